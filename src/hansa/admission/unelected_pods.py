"""Keeps pods that were not elected off virtual nodes: those that tolerate every taint, such as of operators. Pure.

A scheduler prefers a virtual node, since that has most free, and nothing would start the pod there. Pods of DaemonSets,
which have a node already, are refused by a policy of the API server.
"""

from typing import Any, Final

from hansa.admission import required_affinity
from hansa.model import keys

Pod = dict[str, Any]
OFF: Final = {"key": keys.PROVIDER_TAINT, "operator": "NotIn", "values": ["admiralty"]}
_EFFECTS: Final = ("", "NoSchedule")


def may_be_misplaced(pod: Pod) -> bool:
    """Whether a scheduler may choose a virtual node for a pod that was not elected and says nothing of these nodes."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    is_elected = keys.ELECT in (metadata.get("annotations") or {})
    if is_elected or spec.get("nodeName") or keys.PROVIDER_TAINT in (spec.get("nodeSelector") or {}):
        return False
    if any(one.get("kind") == "DaemonSet" for one in metadata.get("ownerReferences") or ()):
        return False
    return any(map(_tolerates_everything, spec.get("tolerations") or ()))


def keep_off(pod: Pod) -> Pod:
    """The pod, which requires a node that is not virtual."""
    return {**pod, "spec": required_affinity.requiring(pod.get("spec") or {}, OFF)}


def conditions() -> tuple[dict[str, str], ...]:
    """As `may_be_misplaced`, for the API server: it sends few other pods."""
    return (
        {"name": "not-elected", "expression": f"!has(object.metadata.annotations) || !({_IS_ELECTED})"},
        {"name": "no-daemon-set", "expression": f"!has(object.metadata.ownerReferences) || !({_IS_OF_DAEMON_SET})"},
        {"name": "tolerates-everything", "expression": f"has(object.spec.tolerations) && {_TOLERATES}"},
    )


_IS_ELECTED: Final = f"'{keys.ELECT}' in object.metadata.annotations"
_IS_OF_DAEMON_SET: Final = "object.metadata.ownerReferences.exists(o, o.kind == 'DaemonSet')"
_TOLERATES: Final = (
    "object.spec.tolerations.exists(t, (!has(t.key) || t.key == '')"
    " && (!has(t.effect) || t.effect == '' || t.effect == 'NoSchedule'))"
)


def _tolerates_everything(toleration: dict[str, Any]) -> bool:
    return not toleration.get("key") and (toleration.get("effect") or "") in _EFFECTS
