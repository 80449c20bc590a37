"""How a pod wants to lie to other pods: spread over the lower cluster, near some of them, away from others."""

from collections.abc import Callable
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LABEL_KEYS: Final = ("matchLabelKeys", "mismatchLabelKeys")


def settle_label_keys(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop the label keys that the upper API server has put into the selector: a second time it is refused."""
    changed: Spec = {}
    if spread := spec.get("topologySpreadConstraints"):
        changed["topologySpreadConstraints"] = [_settled(one) for one in spread]
    return with_terms(spec | changed, _settled)


def with_terms(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """The spec with every term about other pods changed, required or preferred, near or away from them."""

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


def _settled(term: Spec) -> Spec:
    selector: dict[str, Any] = term.get("labelSelector") or {}
    said = {one.get("key") for one in selector.get("matchExpressions") or ()} | set(selector.get("matchLabels") or ())
    open_keys = {name: [key for key in term.get(name) or () if key not in said] for name in _LABEL_KEYS}
    others = {name: value for name, value in term.items() if name not in _LABEL_KEYS}
    return others | {name: left for name, left in open_keys.items() if left}
