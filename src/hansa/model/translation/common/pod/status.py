"""The status of a lower pod, synced to its upper pod as a kubelet would set it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link

Condition = dict[str, Any]

# Not synced: qosClass, which the API server computes, and generations, claims and candidate nodes of the lower cluster.
_FIELDS: Final = (
    *("phase", "reason", "message", "startTime", "podIP", "podIPs", "hostIP", "hostIPs"),
    *("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"),
    *("resize", "allocatedResources", "resources"),
)
# Kubelets remove these conditions when they no longer apply. Conditions of other types are kept.
_KUBELET: Final = frozenset(
    {
        *("Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"),
        *("PodResizePending", "PodResizeInProgress"),
    }
)
# Conditions that kubelets, the scheduler and controllers set on any pod, whatever gates it has.
_RESERVED: Final = _KUBELET | {"PodScheduled", "DisruptionTarget"}
_FINISHED: Final = frozenset({"Succeeded", "Failed"})


def up_patches(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """One patch of the upper pod's status, which also annotates the uid of the lower pod."""
    have, want = upper.status, lower.status
    if have.get("phase") in _FINISHED and want.get("phase") not in _FINISHED:
        return  # a finished pod never runs again
    status = diff.merge_patch(synced(have), synced(want))
    before = plain(have.get("conditions") or ())
    after = _conditions(before, plain(want.get("conditions") or ()), gates(upper), hidden=gates(lower))
    if timeless(before) != timeless(after):
        status["conditions"] = after
    if not status:
        return
    patch: dict[str, Any] = {"status": status}
    if upper.annotations.get(keys.LOWER_UID) != lower.uid:
        patch["metadata"] = {"annotations": {keys.LOWER_UID: lower.uid}}
    yield PatchPart(patch, "status")


def synced(status: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a status that are synced, without the conditions."""
    return {name: status[name] for name in _FIELDS if name in status}


def plain(conditions: Iterable[Condition]) -> list[Condition]:
    """Conditions without observedGeneration: generations of the two pods are not related."""
    return [{name: value for name, value in one.items() if name != "observedGeneration"} for one in conditions]


def timeless(conditions: Iterable[Condition]) -> dict[str, Condition]:
    """Conditions by type, without timestamps: a difference in these alone is not worth a write."""
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

    The condition of a readiness gate belongs to the pod that has the gate, so the lower pod's are not synced.
    """
    lower = [one for one in lower if one["type"] not in (*gates, *hidden)]
    replaced = {one["type"] for one in lower} | _KUBELET
    own = [one for one in upper if one["type"] not in replaced]
    closed = [gate for gate in gates if _by_type(own).get(gate, {}).get("status") != "True"]
    return [_gated(one, closed) if closed else one for one in lower] + own


def _gated(condition: Condition, closed: list[str]) -> Condition:
    """Set Ready to False while the condition of a readiness gate, set in the upper cluster, is not True."""
    if condition["type"] != "Ready" or condition["status"] != "True":
        return condition
    message = f'the status of pod readiness gate "{closed[0]}" is not "True"'
    return condition | {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}


class _Gate(msgspec.Struct, gc=False, rename="camel"):
    condition_type: str = ""


class _Gates(msgspec.Struct, gc=False, rename="camel"):
    readiness_gates: tuple[_Gate, ...] | None = None


def gates(pod: Object) -> list[str]:
    """The condition types of a pod's readiness gates, but for those that are never set from outside."""
    if b'"readinessGates"' not in pod.raw("spec"):
        return []
    found = (gate.condition_type for gate in pod.decode("spec", _Gates).readiness_gates or ())
    return [one for one in found if one not in _RESERVED]
