"""Readiness gates: controllers of the tenant set their conditions, and Services of the super cluster depend on them."""

from collections.abc import Iterable, Iterator
from typing import Any

from hansa.kube.objects import Object
from hansa.model.mode import PatchPart
from hansa.model.translation.common.pod import status
from hansa.model.translation.common.pod.status import Condition


def gate_conditions(pod: Object) -> dict[str, Any] | None:
    """The conditions of a pod's readiness gates, as a part of its status; None for the many pods without gates."""
    gates = status.gates(pod)
    if not gates:
        return None
    return {"conditions": [one for one in status.plain(pod.status.get("conditions") or ()) if one["type"] in gates]}


def gate_patches(lower: Object, wanted: Object) -> Iterator[PatchPart]:
    """A status patch if a gate's condition changed. The list is replaced, so the patch requires the version read."""
    gates = status.gates(wanted)
    if not gates:
        return
    want: Iterable[Condition] = wanted.status.get("conditions") or ()
    have = lower.status.get("conditions") or []
    if status.timeless(want) != status.timeless(one for one in status.plain(have) if one["type"] in gates):
        others = [one for one in have if one["type"] not in gates]
        read = {"resourceVersion": lower.version} if lower.version else {}
        yield PatchPart({"metadata": read, "status": {"conditions": [*others, *want]}}, "status")
