"""Readiness gates are opened above by whoever asked for them, and hold below, where Services look at readiness."""

from collections.abc import Iterable, Iterator
from typing import Any

from hansa.kube.objects import Object
from hansa.model.mode import Part
from hansa.model.translation.pod import status
from hansa.model.translation.pod.status import Condition


def opened(pod: Object) -> dict[str, Any] | None:
    """The conditions that a pod's gates wait for, as a part of its status; most pods have none."""
    gates = status.gates(pod)
    if not gates:
        return None
    return {"conditions": [one for one in status.plain(pod.status.get("conditions") or ()) if one["type"] in gates]}


def patches(lower: Object, wanted: Object) -> Iterator[Part]:
    """What of the gates has changed above. The list is written whole, so it must be the one that was read."""
    gates = status.gates(wanted)
    if not gates:
        return
    want: Iterable[Condition] = wanted.status.get("conditions") or ()
    have = lower.status.get("conditions") or []
    if status.timeless(want) != status.timeless(one for one in status.plain(have) if one["type"] in gates):
        others = [one for one in have if one["type"] not in gates]
        read = {"resourceVersion": lower.version} if lower.version else {}
        yield Part({"metadata": read, "status": {"conditions": [*others, *want]}}, "status")
