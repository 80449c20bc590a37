"""Restrictions on the node's namespaces and ports, and on addresses that the kubelet connects to for a pod."""

from collections.abc import Iterator

from hansa.model.translation.tenant.pod.restrictions.pod_spec import Container, Handler, PodSpec, Violation
from hansa.model.translation.tenant.tenant_settings import Allowance


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Fields by which a pod would use its node's namespaces, ports or network."""
    for name, is_used, allowance in (
        ("hostNetwork", spec.host_network, Allowance.HOST_NETWORK),
        ("hostPID", spec.host_pid, Allowance.HOST_PID),
        ("hostIPC", spec.host_ipc, Allowance.HOST_IPC),
    ):
        if is_used:
            yield Violation(f"spec.{name}: true", allowance)
    for path, container in spec.all_containers:
        # With hostNetwork every port is a host port, and hostNetwork is checked before.
        for port in () if spec.host_network else container.ports or ():
            if port.host_port:
                yield Violation(f"{path}.ports.hostPort: {port.host_port}", Allowance.HOST_PORTS)
        yield from _probed_hosts(path, container)


def _probed_hosts(path: str, container: Container) -> Iterator[Violation]:
    """The kubelet sends probes and hooks from its node's network, so they reach only the pod itself."""
    hooks = container.lifecycle
    for name, handler in (
        ("livenessProbe", container.liveness_probe),
        ("readinessProbe", container.readiness_probe),
        ("startupProbe", container.startup_probe),
        ("lifecycle.postStart", hooks.post_start if hooks else None),
        ("lifecycle.preStop", hooks.pre_stop if hooks else None),
    ):
        if handler is not None and (host := _host(handler)):
            yield Violation(f"{path}.{name}.{host}", Allowance.HOST_PROBES)


def _host(handler: Handler) -> str:
    for name, action in (("httpGet", handler.http_get), ("tcpSocket", handler.tcp_socket)):
        if action is not None and action.host:
            return f"{name}.host: {action.host}"
    return ""
