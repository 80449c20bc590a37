"""What a tenant's pod may not do in the super cluster, in one sentence each, unless its VirtualCluster allows it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.tolerations import Effect, Taint, Toleration
from hansa.model import keys, references
from hansa.model.pair import Link
from hansa.model.translation.tenant import classes, settings
from hansa.model.translation.tenant.settings import Allowance

_ROLES: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_TAINTS: Final = tuple(
    Taint(role, effect=effect) for role in _ROLES for effect in (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
)
_AVOIDING: Final = ("NotIn", "DoesNotExist")
# Those of Kubernetes' baseline standard. With others, a container can become its node's master.
_CAPABILITIES: Final = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)


def check(pod: Object, link: Link) -> str:
    """Why a pod may not travel; empty if it may."""
    spec, allowed = pod.decode("spec", _Spec), settings.of(link).allowed
    for allowance, find in _RAILS:
        if allowance not in allowed and (fact := next(find(spec, pod, link), "")):
            return f"{fact}, which its VirtualCluster does not allow ({allowance})"
    if spec.resource_claims:
        return f"it names the resource claim {spec.resource_claims[0].name}, and these do not travel"
    if spec.node_name and keys.LOWER_UID not in pod.annotations and (fact := _unknown_node(spec.node_name, link)):
        return fact
    return _strange(pod, link) if spec.ephemeral_containers else ""


class _Struct(msgspec.Struct, gc=False, rename="camel"):
    """A part of the API's form; null is the same as absent."""


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
    def all_containers(self) -> Iterator[_Container]:
        for some in (self.init_containers, self.containers, self.ephemeral_containers):
            yield from some or ()


def _host_paths(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.host_path is not None:
            yield f"volume {volume.name} is {volume.host_path.get('path')} of its node"


def _host_network(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_network:
        yield "it is on the network of its node"


def _host_processes(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_pid:
        yield "it sees the processes of its node"


def _host_memory(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if spec.host_ipc:
        yield "it shares memory with its node"


def _host_ports(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    # On the network of its node, every port is one of the node's, and that was allowed before.
    for container in () if spec.host_network else spec.all_containers:
        for port in container.ports or ():
            if port.host_port:
                yield f"container {container.name} takes port {port.host_port} of its node"


def _privileges(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    if _is_host_process(spec.security_context):
        yield "it runs as processes of its node"
    for container in spec.all_containers:
        security = container.security_context or _Security()
        added = (security.capabilities or _Capabilities()).add or ()
        if security.privileged:
            yield f"container {container.name} is privileged"
        if security.proc_mount == "Unmasked":
            yield f"container {container.name} sees /proc unmasked"
        if _is_host_process(security):
            yield f"container {container.name} runs as a process of its node"
        if more := sorted(one for one in added if one.removeprefix("CAP_") not in _CAPABILITIES):
            yield f"container {container.name} has the capability {more[0]}"


def _control_plane(spec: _Spec, _pod: Object, _link: Link) -> Iterator[str]:
    affinity = (spec.affinity or _Affinity()).node_affinity or _NodeAffinity()
    terms = (affinity.required or _Terms()).node_selector_terms or ()
    asked = {one.key for term in terms for one in term.match_expressions or () if one.operator not in _AVOIDING}
    if (asked | (spec.node_selector or {}).keys()) & set(_ROLES):
        yield "it asks for a control-plane node"
    if any(one.tolerates(taint) for one in spec.tolerations or () for taint in _TAINTS):
        yield "it tolerates the taint of control-plane nodes"


def _priority(spec: _Spec, _pod: Object, link: Link) -> Iterator[str]:
    name = spec.priority_class_name
    offered = link.around.lower(resources.PRIORITY_CLASSES, Place("", name)) if name else None
    if name and not (offered is not None and classes.is_public(offered)):
        yield f"priority class {name} is not one that the super cluster offers"


def _pull_secrets(spec: _Spec, pod: Object, link: Link) -> Iterator[str]:
    for secret in spec.image_pull_secrets or ():
        if secret.name and link.around.upper(resources.SECRETS, Place(pod.namespace, secret.name)) is None:
            yield f"image pull secret {secret.name} is not in namespace {pod.namespace}"


def _unknown_node(name: str, link: Link) -> str:
    if link.around.upper(resources.NODES, Place("", name)) is not None:
        return ""
    return f"node {name} is not here: a pod can only name a node that another pod of this cluster runs on"


def _strange(pod: Object, link: Link) -> str:
    """What an added container would read although it is not the tenant's; all else was looked at before it was made."""
    for one in references.of_added_containers(pod):
        if link.around.lower(one.resource, Place(one.namespace, one.name)) is None:
            return f"a container was added that reads {one.resource} {one.name}, of which nothing is below yet"
    return ""


def _is_host_process(security: _Security | None) -> bool:
    return bool(security and security.windows_options and security.windows_options.host_process)


_Finder = Callable[[_Spec, Object, Link], Iterator[str]]
_RAILS: Final[Iterable[tuple[Allowance, _Finder]]] = (
    (Allowance.HOST_PATH, _host_paths),
    (Allowance.HOST_NETWORK, _host_network),
    (Allowance.HOST_PID, _host_processes),
    (Allowance.HOST_IPC, _host_memory),
    (Allowance.HOST_PORTS, _host_ports),
    (Allowance.PRIVILEGED, _privileges),
    (Allowance.CONTROL_PLANE_NODES, _control_plane),
    (Allowance.PRIORITY_CLASSES, _priority),
    (Allowance.PULL_SECRETS, _pull_secrets),
)
