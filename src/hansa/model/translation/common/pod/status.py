"""What a lower pod tells its upper one: the status, less what counts below only. We are the upper pod's kubelet."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link

Condition = dict[str, Any]

# Left out: qosClass, which the API server computes; what counts versions, claims and candidates of the lower cluster.
_FIELDS: Final = (
    *("phase", "reason", "message", "startTime", "podIP", "podIPs", "hostIP", "hostIPs"),
    *("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"),
    *("resize", "allocatedResources", "resources"),
)
# A kubelet takes these away when they are over; conditions of other types belong to whoever set them.
_KUBELET: Final = frozenset(
    {
        *("Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"),
        *("PodResizePending", "PodResizeInProgress"),
    }
)
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


def up_patches(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """What the upper pod's status does not say yet, in one write, which also notes whose status it is."""
    have, told = upper.status, lower.status
    if have.get("phase") in _FINISHED and told.get("phase") not in _FINISHED:
        return  # what is finished does not run again, whatever is there under its name
    status = diff.merge_patch(_chosen(have), _chosen(told))
    before = plain(have.get("conditions") or ())
    after = _conditions(before, plain(told.get("conditions") or ()), gates(upper), hidden=gates(lower))
    if timeless(before) != timeless(after):
        status["conditions"] = after
    if not status:
        return
    patch: dict[str, Any] = {"status": status}
    if upper.annotations.get(keys.LOWER_UID) != lower.uid:
        patch["metadata"] = {"annotations": {keys.LOWER_UID: lower.uid}}
    yield PatchPart(patch, "status")


def _chosen(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: status[name] for name in _FIELDS if name in status}


def plain(conditions: Iterable[Condition]) -> list[Condition]:
    """Without the generations that they were seen at: each side counts its own, and the upper one keeps what it has."""
    return [{name: value for name, value in one.items() if name != "observedGeneration"} for one in conditions]


def timeless(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """What conditions say, but not since when: both sides scheduled the pod, and the moment is not worth a write."""
    return {
        one["type"]: {name: value for name, value in one.items() if name not in ("lastProbeTime", "lastTransitionTime")}
        for one in conditions
    }


def _by_type(conditions: Iterable[Condition]) -> dict[str, Condition]:
    return {one["type"]: one for one in conditions}


def _conditions(
    upper: Iterable[Condition], lower: list[Condition], gates: Iterable[str], *, hidden: Iterable[str]
) -> list[Condition]:
    """The lower pod's conditions, and those of the upper one that others set.

    A gate's condition belongs to the side that asked for the gate: those of the lower pod are not told.
    """
    lower = [one for one in lower if one["type"] not in (*gates, *hidden)]
    told = {one["type"] for one in lower} | _KUBELET
    own = [one for one in upper if one["type"] not in told]
    closed = [gate for gate in gates if _by_type(own).get(gate, {}).get("status") != "True"]
    return [_gated(one, closed) if closed else one for one in lower] + own


def _gated(condition: Condition, closed: list[str]) -> Condition:
    """A pod is not ready while one of its readiness gates, which are opened above, is closed."""
    if condition["type"] != "Ready" or condition["status"] != "True":
        return condition
    message = f'the status of pod readiness gate "{closed[0]}" is not "True"'
    return condition | {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}


class _Gate(msgspec.Struct, gc=False, rename="camel"):
    condition_type: str = ""


class _Gates(msgspec.Struct, gc=False, rename="camel"):
    readiness_gates: tuple[_Gate, ...] | None = None


def gates(pod: Object) -> list[str]:
    """The types of the conditions that a pod's readiness waits for, besides its containers."""
    if b'"readinessGates"' not in pod.raw("spec"):
        return []
    return [gate.condition_type for gate in pod.decode("spec", _Gates).readiness_gates or ()]
