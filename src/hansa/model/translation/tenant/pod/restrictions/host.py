"""Restrictions on the node's namespaces and ports, and on addresses that the kubelet connects to for a pod."""

from collections.abc import Iterator

from hansa.model.translation.tenant.pod.restrictions.pod_spec import Container, Handler, PodSpec, Violation
from hansa.model.translation.tenant.tenant_settings import Allowance


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Fields by which a pod would use its node's namespaces, ports or network."""
    if spec.host_network:
        yield Violation("spec.hostNetwork: true", Allowance.HOST_NETWORK)
    if spec.host_pid:
        yield Violation("spec.hostPID: true", Allowance.HOST_PID)
    if spec.host_ipc:
        yield Violation("spec.hostIPC: true", Allowance.HOST_IPC)
    for container in spec.all_containers:
        # With hostNetwork every port is a host port, and hostNetwork is checked before.
        for port in () if spec.host_network else container.ports or ():
            if port.host_port:
                yield Violation(f"{spec.path(container)}.ports.hostPort: {port.host_port}", Allowance.HOST_PORTS)
        # The kubelet sends probes and hooks from its node's network, so they reach only the pod itself.
        for name, handler in _handlers(container):
            if host := _host(handler):
                yield Violation(f"{spec.path(container)}.{name}.{host}", Allowance.HOST_PROBES)


def _handlers(container: Container) -> Iterator[tuple[str, Handler]]:
    if container.liveness_probe is not None:
        yield "livenessProbe", container.liveness_probe
    if container.readiness_probe is not None:
        yield "readinessProbe", container.readiness_probe
    if container.startup_probe is not None:
        yield "startupProbe", container.startup_probe
    if (hooks := container.lifecycle) is not None:
        if hooks.post_start is not None:
            yield "lifecycle.postStart", hooks.post_start
        if hooks.pre_stop is not None:
            yield "lifecycle.preStop", hooks.pre_stop


def _host(handler: Handler) -> str:
    if handler.http_get is not None and handler.http_get.host:
        return f"httpGet.host: {handler.http_get.host}"
    if handler.tcp_socket is not None and handler.tcp_socket.host:
        return f"tcpSocket.host: {handler.tcp_socket.host}"
    return ""
