"""How a pod wants to lie to other pods: spread over the lower cluster, near some of them, away from others."""

from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.pod.spec import Spec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LABEL_KEYS: Final = ("matchLabelKeys", "mismatchLabelKeys")


def settle_label_keys(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop the label keys that the upper API server has put into the selector: a second time it is refused."""
    changed: Spec = {}
    if spread := spec.get("topologySpreadConstraints"):
        changed["topologySpreadConstraints"] = [_settled(one) for one in spread]
    affinity = spec.get("affinity") or {}
    if pods := {name: _affinity(affinity[name]) for name in ("podAffinity", "podAntiAffinity") if affinity.get(name)}:
        changed["affinity"] = affinity | pods
    return spec | changed


def _affinity(affinity: Spec) -> Spec:
    required = [_settled(one) for one in affinity.get(_REQUIRED) or ()]
    preferred = [
        one | {"podAffinityTerm": _settled(one.get("podAffinityTerm") or {})} for one in affinity.get(_PREFERRED) or ()
    ]
    return affinity | ({_REQUIRED: required} if required else {}) | ({_PREFERRED: preferred} if preferred else {})


def _settled(term: Spec) -> Spec:
    selector: dict[str, Any] = term.get("labelSelector") or {}
    said = {one.get("key") for one in selector.get("matchExpressions") or ()} | set(selector.get("matchLabels") or ())
    open_keys = {name: [key for key in term.get(name) or () if key not in said] for name in _LABEL_KEYS}
    others = {name: value for name, value in term.items() if name not in _LABEL_KEYS}
    return others | {name: left for name, left in open_keys.items() if left}
