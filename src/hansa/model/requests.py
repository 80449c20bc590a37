"""The resource requests of a pod, computed as kube-scheduler does.

Sidecars, init containers, overhead, pod-level requests and the larger value during a resize count. Amounts are integers
in nano-units, so that sums are exact.
"""

from collections.abc import Mapping

import msgspec

from hansa.kube import objects
from hansa.kube.language import quantity

Amounts = dict[str, int]  # nano-units by resource; an absent resource is zero
PODS = "pods"  # every pod uses one of this resource
_POD_LEVEL = frozenset({"cpu", "memory"})  # and hugepages: resources of pod-level requests
_FINISHED = frozenset({"Succeeded", "Failed"})
_FINISHED_BYTES = tuple(one.encode() for one in sorted(_FINISHED))
_ResourceList = Mapping[str, str] | None


class _Resources(msgspec.Struct, frozen=True, gc=False):
    requests: _ResourceList = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    restart_policy: str | None = None

    @property
    def is_sidecar(self) -> bool:
        return self.restart_policy == "Always"


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] | None = None
    resources: _Resources | None = None
    overhead: _ResourceList = None


class _ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    allocated_resources: _ResourceList = None


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    reason: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None
    allocated_resources: _ResourceList = None  # of the pod as a whole
    resources: _Resources | None = None


class BoundRequest(msgspec.Struct, frozen=True, gc=False):
    """The requests of a pod that is bound to a node, including one of `pods`."""

    node: str
    amounts: Amounts


def of_bound_pod(pod: objects.Object) -> BoundRequest | None:
    """The requests of a pod on its node; None if it is not bound or is finished."""
    spec = pod.decode("spec", _Spec)
    if not spec.node_name:
        return None
    status = pod.decode("status", _Status)
    return None if status.phase in _FINISHED else BoundRequest(spec.node_name, _with_pod_count(spec, status))


def of_pod(pod: objects.Object) -> Amounts:
    """The requests of a pod, bound or not, including one of `pods`."""
    return _with_pod_count(pod.decode("spec", _Spec), pod.decode("status", _Status))


def of_spec(raw: bytes) -> Amounts:
    """The requests of a pod with this spec, as JSON, without those of a resize."""
    return _whole_pod(msgspec.json.decode(raw or b"{}", type=_Spec), _Status())


def is_finished(pod: objects.Object) -> bool:
    """Whether a pod is Succeeded or Failed, so that its requests no longer count."""
    raw = pod.raw("status")  # most pods are not finished: their status is not decoded
    return any(one in raw for one in _FINISHED_BYTES) and pod.decode("status", _Status).phase in _FINISHED


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Parse a ResourceList of the API."""
    return {name: quantity.parse(text).nano for name, text in resources.items()} if resources else {}


def add(total: Amounts, part: Mapping[str, int], times: int = 1) -> None:
    """Add a part to a total in place, or subtract it with `times=-1`. Resources that become zero are removed."""
    for name, nano in part.items():
        if changed := total.get(name, 0) + times * nano:
            total[name] = changed
        else:
            total.pop(name, None)


def _with_pod_count(spec: _Spec, status: _Status) -> Amounts:
    total = _whole_pod(spec, status)
    total[PODS] = total.get(PODS, 0) + quantity.UNIT
    return total


def _whole_pod(spec: _Spec, status: _Status) -> Amounts:
    total = _containers(spec, status)
    requested = amounts(spec.resources.requests) if spec.resources else {}
    for name, nano in _resized(requested, status.resources, status.allocated_resources, status).items():
        if name in requested and (name in _POD_LEVEL or name.startswith("hugepages-")):
            total[name] = nano
    add(total, amounts(spec.overhead))
    return total


def _containers(spec: _Spec, status: _Status) -> Amounts:
    """The sum over containers and sidecars, or the maximum during initialization if that is more."""
    statuses = {one.name: one for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    total: Amounts = {}
    for container in spec.containers:
        add(total, _container(container, statuses, status))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.init_containers or ():
        if container.is_sidecar:
            requested = _container(container, statuses, status)
            add(total, requested)
            add(sidecars, requested)
            _raise(most, sidecars)
        else:
            step = amounts(container.resources.requests if container.resources else None)
            add(step, sidecars)  # the sidecars that start before it
            _raise(most, step)
    _raise(total, most)
    return total


def _container(container: _Container, statuses: Mapping[str, _ContainerStatus], status: _Status) -> Amounts:
    requested = amounts(container.resources.requests if container.resources else None)
    if (own := statuses.get(container.name)) is None:
        return requested
    return _resized(requested, own.resources, own.allocated_resources, status)


def _resized(requested: Amounts, actual: _Resources | None, allocated: _ResourceList, status: _Status) -> Amounts:
    """What counts during a resize: the maximum of requested, allocated and actual resources."""
    if actual is None:
        return requested
    # An infeasible resize is never applied, so the requested values don't count.
    most = {} if _is_infeasible(status) else requested
    _raise(most, amounts(actual.requests))
    _raise(most, amounts(allocated))
    return most


def _is_infeasible(status: _Status) -> bool:
    return any(one.type == "PodResizePending" and one.reason == "Infeasible" for one in status.conditions or ())


def _raise(total: Amounts, to: Mapping[str, int]) -> None:
    for name, nano in to.items():
        if nano > total.get(name, 0):
            total[name] = nano
