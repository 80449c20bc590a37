"""A Service that selects proxy pods is rerouted to their delegates and becomes global. Pure.

Its selector is that of the delegates, the one of its user is kept in an annotation and restored when no proxy pod
matches it any more. A manifest that is applied again brings the former selector back, beside ours or instead of it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import diff, keys, stamp
from hansa.model.translation.federation import labels

Labels = Mapping[str, str]
_PREFIX: Final = f"{keys.FEDERATION}/"
GLOBAL: Final = {keys.GLOBAL_SERVICE: "true", keys.CILIUM_GLOBAL_FORMER: "true", keys.CILIUM_GLOBAL: "true"}
_OURS: Final = (keys.ORIGINAL_SELECTOR, keys.REROUTED)


def is_global(obj: Object) -> bool:
    """Whether a Service or Ingress is copied to the targets. A copy is not, nor one that its user excluded."""
    if keys.IS_DELEGATE in obj.annotations or stamp.of(obj) is not None:
        return False
    return _says_global(obj.annotations)


def _says_global(annotations: Labels) -> bool:
    return any(annotations.get(key) == "true" for key in GLOBAL)


def original_selector(service: Object) -> dict[str, str]:
    """The selector that the user of a Service gave it last; empty if it has none."""
    current: dict[str, str] = service.spec.get("selector") or {}
    kept = _parsed(service.annotations.get(keys.ORIGINAL_SELECTOR, ""))
    if kept and current == _rerouted(service, kept):
        return kept
    return {key: value for key, value in current.items() if not key.startswith(_PREFIX)} or kept


def service_patch(service: Object, proxies: Iterable[Labels], *, labels_global: bool = False) -> dict[str, Any]:
    """The patch of a Service, by the labels of the proxy pods in its namespace; empty if there is none.

    With `labels_global`, global Services have a label. EndpointSlices have all labels of their Service, but none of its
    annotations.
    """
    if service.is_deleting or keys.IS_DELEGATE in service.annotations or stamp.of(service) is not None:
        return {}
    if service.spec.get("type") == "ExternalName" or labels.check(service.annotations):
        return {}
    patch = _selector_patch(service, proxies)
    annotations = {**service.annotations, **patch.get("metadata", {}).get("annotations", {})}
    label = "true" if labels_global and _says_global(annotations) else None
    if service.labels.get(keys.GLOBAL_SERVICE) == label:
        return patch
    return patch | {"metadata": patch.get("metadata", {}) | {"labels": {keys.GLOBAL_SERVICE: label}}}


def _selector_patch(service: Object, proxies: Iterable[Labels]) -> dict[str, Any]:
    original = original_selector(service)
    if original and any(original.items() <= one.items() for one in proxies):
        return _patch(service, _rerouted(service, original), _rerouted_annotations(service, original))
    if keys.ORIGINAL_SELECTOR in service.annotations:
        return _patch(service, original, _restored_annotations(service))
    return {}


def ingress_patch(ingress: Object, is_global_service: Callable[[str], bool]) -> dict[str, Any]:
    """The patch of an Ingress: it is global while it leads to a global Service; empty if there is none."""
    if ingress.is_deleting or keys.IS_DELEGATE in ingress.annotations or stamp.of(ingress) is not None:
        return {}
    leads_there = any(map(is_global_service, backends(ingress)))
    have, ours = ingress.annotations, keys.REROUTED in ingress.annotations
    if leads_there and have.get(keys.GLOBAL_SERVICE) is None:
        return {"metadata": {"annotations": {keys.GLOBAL_SERVICE: "true", keys.REROUTED: keys.GLOBAL_SERVICE}}}
    return (
        {"metadata": {"annotations": dict.fromkeys(have[keys.REROUTED].split(",")) | {keys.REROUTED: None}}}
        if (ours and not leads_there)
        else {}
    )


def backends(ingress: Object) -> set[str]:
    """The names of the Services that an Ingress leads to."""
    spec = ingress.spec
    found = [spec.get("defaultBackend")]
    for rule in spec.get("rules") or ():
        found += [path.get("backend") for path in (rule.get("http") or {}).get("paths") or ()]
    return {name for one in found if (name := ((one or {}).get("service") or {}).get("name"))}


def _rerouted(service: Object, original: Labels) -> dict[str, str]:
    return labels.of(service.annotations).labels(original)


def _rerouted_annotations(service: Object, original: Labels) -> dict[str, str]:
    """The annotations of a rerouted Service. What its user said about it stays."""
    before = service.annotations
    known = before.get(keys.REROUTED)
    added = [key for key in GLOBAL if key not in before] if known is None else known.split(",")
    missing = {key: value for key, value in GLOBAL.items() if key not in before}
    selector = ",".join(f"{key}={value}" for key, value in sorted(original.items()))
    return {**before, **missing, keys.ORIGINAL_SELECTOR: selector, keys.REROUTED: ",".join(added)}


def _restored_annotations(service: Object) -> dict[str, str]:
    added = service.annotations.get(keys.REROUTED, "").split(",")
    return {key: value for key, value in service.annotations.items() if key not in (*added, *_OURS)}


def _patch(service: Object, selector: Labels, annotations: Labels) -> dict[str, Any]:
    """The patch, in exactly the version that was read: what a user changes meanwhile is not overwritten."""
    parts = {
        "metadata": {"annotations": diff.merge_patch(service.annotations, annotations)},
        "spec": {"selector": diff.merge_patch(service.spec.get("selector") or {}, selector)},
    }
    changed = {name: part for name, part in parts.items() if any(part.values())}
    if not changed:
        return {}
    return changed | {"metadata": changed.get("metadata", {}) | {"resourceVersion": service.version}}


def _parsed(text: str) -> dict[str, str]:
    pairs = (one.partition("=") for one in text.split(",") if "=" in one)
    return {key: value for key, _, value in pairs}
