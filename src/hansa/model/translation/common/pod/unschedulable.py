"""The condition PodScheduled of a pod whose copy was refused, so that users see why it stays Pending."""

from collections.abc import Iterable
from typing import Final

from hansa.kube.objects import Object
from hansa.model.mode import PatchPart

SCHEDULED: Final = "PodScheduled"
MAX_MESSAGE: Final = 1024  # characters


def unscheduled(pod: Object, message: str) -> Iterable[PatchPart]:
    """Set PodScheduled to False with reason Refused. The condition of a later lower pod replaces it."""
    refused = {"type": SCHEDULED, "status": "False", "reason": "Refused", "message": message[:MAX_MESSAGE]}
    conditions = pod.status.get("conditions") or []
    if any(refused.items() <= one.items() for one in conditions):
        return ()
    return [
        PatchPart(
            {"status": {"conditions": [*(one for one in conditions if one["type"] != SCHEDULED), refused]}}, "status"
        )
    ]
