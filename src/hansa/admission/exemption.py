"""Which pods are left as they are. The API server need not even ask about them, but may: both know the same rules."""

from typing import Any, Final

from hansa.admission.parking import Pod
from hansa.model import keys

SYSTEM: Final = "kube-system"
OFF: Final = "off"
MIRROR: Final = (
    "kubernetes.io/config.mirror"  # annotation of a static pod's shadow, which must stay as its kubelet made it
)
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def is_exempt(pod: Pod, namespace: str) -> bool:
    """Whether a pod is none of our business."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    return (
        namespace == SYSTEM
        or labels.get(keys.WEBHOOK) == OFF
        # The descheduler made it from a pod that had come here before, and chose where it may go.
        or labels.get(keys.CREATED_BY_DESCHEDULER) == "true"
        or MIRROR in (metadata.get("annotations") or {})
    )


def selectors() -> dict[str, Any]:
    """The same for a webhook's configuration; only of mirror pods can it not be told there."""
    return {
        "namespaceSelector": {"matchExpressions": [_not(NAMESPACE_NAME, SYSTEM), _not(keys.WEBHOOK, OFF)]},
        "objectSelector": {"matchExpressions": [_not(keys.WEBHOOK, OFF), _not(keys.CREATED_BY_DESCHEDULER, "true")]},
    }


def _not(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": [value]}
