"""Pods that tensile's mutations leave unchanged: system pods, mirror pods, and those that opted out by label.

The rules are defined twice: as a function, and as selectors, which save the API server the call.
"""

from typing import Any, Final

from hansa.admission.mutation import Request, Selection
from hansa.model import keys

SYSTEM: Final = "kube-system"
OFF: Final = "off"
MIRROR: Final = "kubernetes.io/config.mirror"  # annotation of a mirror pod, which must equal the kubelet's static pod
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"


def is_exempt(pod: dict[str, Any], namespace: str) -> bool:
    """Whether the pod stays as it is."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    return (
        namespace == SYSTEM
        or labels.get(keys.WEBHOOK) == OFF
        # The descheduler copied it from a pod that was mutated before, and changed its constraints since.
        or labels.get(keys.CREATED_BY_DESCHEDULER) == "true"
        or MIRROR in (metadata.get("annotations") or {})
    )


def selection() -> Selection:
    """All pods that are not exempt. A selector cannot match annotations, so mirror pods are sent all the same."""
    return Selection(
        matches=_is_not_exempt,
        namespace_selector=(_not_in(NAMESPACE_NAME, SYSTEM), _not_in(keys.WEBHOOK, OFF)),
        object_selector=(_not_in(keys.WEBHOOK, OFF), _not_in(keys.CREATED_BY_DESCHEDULER, "true")),
    )


def _is_not_exempt(request: Request) -> bool:
    return not is_exempt(request.object, request.namespace)


def _not_in(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": [value]}
