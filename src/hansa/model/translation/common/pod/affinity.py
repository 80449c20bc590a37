"""Pod affinity, anti-affinity and topology spread constraints of a lower pod."""

from collections.abc import Callable
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LABEL_KEYS: Final = ("matchLabelKeys", "mismatchLabelKeys")


def drop_applied_label_keys(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop matchLabelKeys that the upper API server merged into the selector: the lower one refuses them there."""
    changed: Spec = {}
    if spread := spec.get("topologySpreadConstraints"):
        changed["topologySpreadConstraints"] = [_without_applied_keys(one) for one in spread]
    return with_terms(spec | changed, _without_applied_keys)


def with_terms(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """The spec with every term of pod affinity and anti-affinity changed, required or preferred."""

    def terms(affinity: Spec) -> Spec:
        required = [change(one) for one in affinity.get(_REQUIRED) or ()]
        preferred = [
            one | {"podAffinityTerm": change(one.get("podAffinityTerm") or {})}
            for one in affinity.get(_PREFERRED) or ()
        ]
        return affinity | ({_REQUIRED: required} if required else {}) | ({_PREFERRED: preferred} if preferred else {})

    affinity = spec.get("affinity") or {}
    pods = {name: terms(affinity[name]) for name in ("podAffinity", "podAntiAffinity") if affinity.get(name)}
    return spec | {"affinity": affinity | pods} if pods else spec


def _without_applied_keys(term: Spec) -> Spec:
    selector: dict[str, Any] = term.get("labelSelector") or {}
    applied = {one.get("key") for one in selector.get("matchExpressions") or ()}
    applied |= set(selector.get("matchLabels") or ())
    open_keys = {name: [key for key in term.get(name) or () if key not in applied] for name in _LABEL_KEYS}
    others = {name: value for name, value in term.items() if name not in _LABEL_KEYS}
    return others | {name: left for name, left in open_keys.items() if left}
