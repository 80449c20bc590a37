"""What a pod asks of its node, counted as kube-scheduler counts it: sidecars, init containers, overhead, pod-level
requests, and the larger side of a resize that is under way. Amounts are whole nano-units, so that sums are exact.
"""

from collections.abc import Mapping

import msgspec

from hansa.kube import objects
from hansa.kube.language import quantity

Amounts = dict[str, int]  # nano-units by resource; what is not there is nothing
PODS = "pods"  # the resource of which every pod takes one
_POD_LEVEL = frozenset({"cpu", "memory"})  # and hugepages: what a pod may ask for as a whole
_FINISHED = frozenset({"Succeeded", "Failed"})
_Spelled = Mapping[str, str] | None


class _Resources(msgspec.Struct, frozen=True, gc=False):
    requests: _Spelled = None


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
    overhead: _Spelled = None


class _ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    resources: _Resources | None = None
    allocated_resources: _Spelled = None


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    reason: str | None = None


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = None
    container_statuses: tuple[_ContainerStatus, ...] | None = None
    init_container_statuses: tuple[_ContainerStatus, ...] | None = None
    allocated_resources: _Spelled = None  # of the pod as a whole
    resources: _Resources | None = None


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes from the node that it is bound to, its own slot included."""

    node: str
    amounts: Amounts


def claim(pod: objects.Object) -> Claim | None:
    """The claim of a pod; None if it is bound to no node or has finished."""
    spec = pod.decode("spec", _Spec)
    if not spec.node_name:
        return None
    status = pod.decode("status", _Status)
    return None if status.phase in _FINISHED else Claim(spec.node_name, _with_slot(spec, status))


def asked(pod: objects.Object) -> Amounts:
    """What a pod takes from whichever node it comes to, its own slot included."""
    return _with_slot(pod.decode("spec", _Spec), pod.decode("status", _Status))


def is_finished(pod: objects.Object) -> bool:
    """Whether a pod has ended for good and takes nothing any more."""
    return pod.decode("status", _Status).phase in _FINISHED


def amounts(spelled: Mapping[str, str] | None) -> Amounts:
    """A resource list of the API as amounts."""
    return {name: quantity.parse(text).nano for name, text in spelled.items()} if spelled else {}


def add(total: Amounts, part: Mapping[str, int], times: int = 1) -> None:
    """Add a part to a total in place, or take it away with `times=-1`. What comes to nothing leaves no trace."""
    for name, nano in part.items():
        if changed := total.get(name, 0) + times * nano:
            total[name] = changed
        else:
            total.pop(name, None)


def _with_slot(spec: _Spec, status: _Status) -> Amounts:
    total = _whole_pod(spec, status)
    total[PODS] = total.get(PODS, 0) + quantity.UNIT
    return total


def _whole_pod(spec: _Spec, status: _Status) -> Amounts:
    total = _containers(spec, status)
    asked = amounts(spec.resources.requests) if spec.resources else {}
    for name, nano in _resized(asked, status.resources, status.allocated_resources, status).items():
        if name in asked and (name in _POD_LEVEL or name.startswith("hugepages-")):
            total[name] = nano
    add(total, amounts(spec.overhead))
    return total


def _containers(spec: _Spec, status: _Status) -> Amounts:
    """The sum of what runs together, or the most that is needed on the way to there."""
    told = {one.name: one for one in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    total: Amounts = {}
    for container in spec.containers:
        add(total, _container(container, told, status))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.init_containers or ():
        if container.is_sidecar:
            asked = _container(container, told, status)
            add(total, asked)
            add(sidecars, asked)
            _raise(most, sidecars)
        else:
            step = amounts(container.resources.requests if container.resources else None)
            add(step, sidecars)  # those that were started before it
            _raise(most, step)
    _raise(total, most)
    return total


def _container(container: _Container, told: Mapping[str, _ContainerStatus], status: _Status) -> Amounts:
    asked = amounts(container.resources.requests if container.resources else None)
    if (seen := told.get(container.name)) is None:
        return asked
    return _resized(asked, seen.resources, seen.allocated_resources, status)


def _resized(asked: Amounts, actual: _Resources | None, allocated: _Spelled, status: _Status) -> Amounts:
    """What counts while a resize is under way: the most of what is asked for, allocated and in force."""
    if actual is None:
        return asked
    # An infeasible resize never comes: what was asked for counts for nothing.
    most = {} if _is_infeasible(status) else asked
    _raise(most, amounts(actual.requests))
    _raise(most, amounts(allocated))
    return most


def _is_infeasible(status: _Status) -> bool:
    return any(one.type == "PodResizePending" and one.reason == "Infeasible" for one in status.conditions or ())


def _raise(total: Amounts, to: Mapping[str, int]) -> None:
    for name, nano in to.items():
        if nano > total.get(name, 0):
            total[name] = nano
