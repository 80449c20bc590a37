"""Why a pod has no lower pod, on the pod itself: where its users look when it stays Pending."""

from collections.abc import Iterable
from typing import Final

from hansa.kube.objects import Object
from hansa.model.mode import PatchPart

SCHEDULED: Final = "PodScheduled"
MOST: Final = 1024  # characters of a sentence


def unscheduled(pod: Object, sentence: str) -> Iterable[PatchPart]:
    """It is not scheduled, because it was refused. The lower pod's own condition replaces this one."""
    told = {"type": SCHEDULED, "status": "False", "reason": "Refused", "message": sentence[:MOST]}
    conditions = pod.status.get("conditions") or []
    if any(told.items() <= one.items() for one in conditions):
        return ()
    return [
        PatchPart(
            {"status": {"conditions": [*(one for one in conditions if one["type"] != SCHEDULED), told]}}, "status"
        )
    ]
