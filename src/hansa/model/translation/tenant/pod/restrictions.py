"""What a tenant's pod may not do in the super cluster unless its VirtualCluster allows it.

Checked before a pod is created or updated there. A refusal names the field, its value, and how to allow it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.language.tolerations import Effect, Taint, Toleration
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, references
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import classes, tenant_settings
from hansa.model.translation.tenant.tenant_settings import Allowance, TenantSettings

_ROLES: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_TAINTS: Final = tuple(
    Taint(role, effect=effect) for role in _ROLES for effect in (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
)
_NEGATIVE_OPERATORS: Final = ("NotIn", "DoesNotExist")
# Those of the baseline Pod Security Standard. With others, a container can take over its node.
_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)


def check(pod: Object, link: Link) -> str:
    """Why a pod is not synced; empty if it may be."""
    spec, tenant = pod.decode("spec", _Spec), tenant_settings.of(link)
    for allowance, find in _RESTRICTIONS:
        if allowance not in tenant.allowed and (field := next(find(spec, pod, link), "")):
            return tenant_settings.refusal(field, allowance, tenant)
    for field, resource, name in _named_classes(spec, tenant):
        if refusal := classes.refusal(field, resource, name, link):
            return refusal
    if spec.resource_claims:
        claim = spec.resource_claims[0].name
        return f"spec.resourceClaims[{claim}] is not supported: ResourceClaims are not synced; remove it from the pod"
    if spec.node_name and keys.LOWER_UID not in pod.annotations and (refusal := _unknown_node(spec.node_name, link)):
        return refusal
    return _unsynced_reference(pod, link) if spec.ephemeral_containers else ""


def objects_read(pod: Object) -> Iterator[Reference]:
    """The objects that `check` reads beside the pod."""
    spec = pod.decode("spec", _Spec)
    if spec.priority_class_name:
        yield Reference(resources.PRIORITY_CLASSES, "", spec.priority_class_name)
    if spec.runtime_class_name:
        yield Reference(resources.RUNTIME_CLASSES, "", spec.runtime_class_name)
    for secret in spec.image_pull_secrets or ():
        yield Reference(resources.SECRETS, pod.namespace, secret.name)
    if spec.node_name:
        yield Reference(resources.NODES, "", spec.node_name)
    if spec.ephemeral_containers:
        yield from references.of_added_containers(pod)


class _Struct(msgspec.Struct, gc=False, rename="camel"):
    """A part of a pod's spec; null means absent."""


class _Capabilities(_Struct):
    add: tuple[str, ...] | None = None


class _Windows(_Struct):
    host_process: bool | None = None


class _Security(_Struct):
    privileged: bool | None = None
    proc_mount: str | None = None
    capabilities: _Capabilities | None = None
    windows_options: _Windows | None = None


class _Port(_Struct):
    host_port: int | None = None


class _Container(_Struct):
    name: str = ""
    security_context: _Security | None = None
    ports: tuple[_Port, ...] | None = None


class _Volume(_Struct):
    name: str = ""
    host_path: dict[str, Any] | None = None


class _Expression(_Struct):
    key: str = ""
    operator: str = ""


class _Term(_Struct):
    match_expressions: tuple[_Expression, ...] | None = None


class _Terms(_Struct):
    node_selector_terms: tuple[_Term, ...] | None = None


class _NodeAffinity(_Struct):
    required: _Terms | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class _Affinity(_Struct):
    node_affinity: _NodeAffinity | None = None


class _Named(_Struct):
    name: str = ""


class _Spec(_Struct):
    host_network: bool | None = None
    host_pid: bool | None = msgspec.field(name="hostPID", default=None)
    host_ipc: bool | None = msgspec.field(name="hostIPC", default=None)
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    priority_class_name: str = ""
    runtime_class_name: str | None = None
    security_context: _Security | None = None
    affinity: _Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    volumes: tuple[_Volume, ...] | None = None
    image_pull_secrets: tuple[_Named, ...] | None = None
    resource_claims: tuple[_Named, ...] | None = None
    containers: tuple[_Container, ...] | None = None
    init_containers: tuple[_Container, ...] | None = None
    ephemeral_containers: tuple[_Container, ...] | None = None

    @property
    def all_containers(self) -> Iterator[tuple[str, _Container]]:
        """Every container, with the path of its field."""
        for field, containers in (
            ("initContainers", self.init_containers),
            ("containers", self.containers),
            ("ephemeralContainers", self.ephemeral_containers),
        ):
            yield from ((f"spec.{field}[{one.name}]", one) for one in containers or ())


def _host_paths(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.host_path is not None:
            yield f"spec.volumes[{volume.name}].hostPath: {volume.host_path.get('path')}"


def _host_network(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_network:
        yield "spec.hostNetwork: true"


def _host_pid(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_pid:
        yield "spec.hostPID: true"


def _host_ipc(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_ipc:
        yield "spec.hostIPC: true"


def _host_ports(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    # With hostNetwork every port is a host port, and hostNetwork is checked before.
    for path, container in () if spec.host_network else spec.all_containers:
        for port in container.ports or ():
            if port.host_port:
                yield f"{path}.ports.hostPort: {port.host_port}"


def _privileges(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if _is_host_process(spec.security_context):
        yield "spec.securityContext.windowsOptions.hostProcess: true"
    for container_path, container in spec.all_containers:
        path, security = f"{container_path}.securityContext", container.security_context or _Security()
        added = (security.capabilities or _Capabilities()).add or ()
        if security.privileged:
            yield f"{path}.privileged: true"
        if security.proc_mount == "Unmasked":
            yield f"{path}.procMount: Unmasked"
        if _is_host_process(security):
            yield f"{path}.windowsOptions.hostProcess: true"
        if more := sorted(one for one in added if one.removeprefix("CAP_") not in _CAPABILITIES):
            yield f"{path}.capabilities.add: {more[0]}"


def _control_plane(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    affinity = (spec.affinity or _Affinity()).node_affinity or _NodeAffinity()
    terms = (affinity.required or _Terms()).node_selector_terms or ()
    expressions = (one for term in terms for one in term.match_expressions or ())
    required = {one.key for one in expressions if one.operator not in _NEGATIVE_OPERATORS}
    for role in _ROLES:
        if role in (spec.node_selector or {}):
            yield f"spec.nodeSelector: {role}"
        if role in required:
            yield f"spec.affinity.nodeAffinity: {role}"
    for index, toleration in enumerate(spec.tolerations or ()):
        if taint := next((one for one in _TAINTS if toleration.tolerates(one)), None):
            yield f"spec.tolerations[{index}]: tolerates {taint}"


def _named_classes(spec: _Spec, tenant: TenantSettings) -> Iterator[tuple[str, Resource, str]]:
    if spec.priority_class_name and Allowance.PRIORITY_CLASSES not in tenant.allowed:
        yield "spec.priorityClassName", resources.PRIORITY_CLASSES, spec.priority_class_name
    if spec.runtime_class_name:
        yield "spec.runtimeClassName", resources.RUNTIME_CLASSES, spec.runtime_class_name


def _pull_secrets(spec: _Spec, pod: Object, link: Link) -> Iterator[str]:
    for secret in spec.image_pull_secrets or ():
        if secret.name and link.lookups.upper(resources.SECRETS, NamespacedName(pod.namespace, secret.name)) is None:
            yield f"spec.imagePullSecrets: {secret.name} (Secret {pod.namespace}/{secret.name} not found; create it)"


def _unknown_node(name: str, link: Link) -> str:
    if link.lookups.upper(resources.NODES, NamespacedName("", name)) is not None:
        return ""
    return (
        f"spec.nodeName: {name} is not allowed: Node {name} not found; remove spec.nodeName, or name a node on which"
        " pods of this tenant run (kubectl get nodes)"
    )


def _unsynced_reference(pod: Object, link: Link) -> str:
    """Refuse ephemeral containers that refer to objects without a copy: the name might be the super cluster's own.

    The references of other containers were checked before the pod was created.
    """
    for one in references.of_added_containers(pod):
        if link.lookups.lower(one.resource, NamespacedName(one.namespace, one.name)) is None:
            what = f"{one.resource.kind} {one.namespace}/{one.name}"
            return f"spec.ephemeralContainers: waiting for {what}: not found in the super cluster; create {what}"
    return ""


def _is_host_process(security: _Security | None) -> bool:
    return bool(security and security.windows_options and security.windows_options.host_process)


_Finder = Callable[[_Spec, Object, Link], Iterator[str]]
_RESTRICTIONS: Final[Iterable[tuple[Allowance, _Finder]]] = (
    (Allowance.HOST_PATH, _host_paths),
    (Allowance.HOST_NETWORK, _host_network),
    (Allowance.HOST_PID, _host_pid),
    (Allowance.HOST_IPC, _host_ipc),
    (Allowance.HOST_PORTS, _host_ports),
    (Allowance.PRIVILEGED, _privileges),
    (Allowance.CONTROL_PLANE_NODES, _control_plane),
    (Allowance.PULL_SECRETS, _pull_secrets),
)
