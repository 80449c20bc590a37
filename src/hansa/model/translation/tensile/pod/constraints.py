"""The node constraints of a lower pod.

They are those in the annotation `clusterSelector`, or, without it, the pod's own, except conditions on the virtual
node: the upper scheduler has checked these, and no lower node matches them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.language import selectors
from hansa.kube.objects import Object
from hansa.model import annotation_json, keys
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.model.translation.common.pod.spec import Spec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# The webhook adds tolerations of these taints to every pod, for the virtual node.
_NODE_FAILURES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def restore_constraints(spec: Spec, pod: Object, link: Link) -> Spec:
    """Restore the constraints in the annotation, or drop those for the upper scheduler."""
    annotated = _annotated(pod.annotations.get(keys.CLUSTER_SELECTOR))
    settings = link_settings.of(link)
    wanted = _lower_part(spec, settings) if annotated is None else _restored(spec, annotated, settings)
    others = {name: value for name, value in spec.items() if name not in wanted}
    return others | {name: value for name, value in wanted.items() if value}


class _Alternative(msgspec.Struct, gc=False):
    """A required term with conditions on both sides."""

    above: dict[str, Any] = {}  # on the virtual node
    below: dict[str, Any] = {}  # on nodes of its cluster


class _Annotated(msgspec.Struct, gc=False, rename="camel"):
    """The fields of the annotation that are restored. Others must not get into a spec."""

    node_selector: dict[str, str] | None = None
    affinity: dict[str, dict[str, Any]] | None = None
    tolerations: list[dict[str, Any]] | None = None
    alternatives: list[_Alternative] | None = None


def _annotated(text: str | None) -> _Annotated | None:
    """Decode the annotation; an invalid one is ignored."""
    try:
        return None if text is None else annotation_json.decode(text, _Annotated, longest=annotation_json.WHOLE)
    except annotation_json.AnnotationJsonError:
        return None


def _restored(spec: Spec, annotated: _Annotated, settings: LinkSettings) -> Spec:
    """The annotated constraints. Pod affinity and anti-affinity are not in the annotation and stay in the spec."""
    pod_affinity = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    return {
        "nodeSelector": annotated.node_selector,
        "affinity": pod_affinity | _annotated_affinity(annotated, settings),
        "tolerations": [*(annotated.tolerations or ()), *_added_tolerations(spec, annotated, settings)],
    }


def _annotated_affinity(annotated: _Annotated, settings: LinkSettings) -> Spec:
    """The annotated affinity, with those of its alternatives whose upper half matches this virtual node."""
    affinity, terms = annotated.affinity or {}, annotated.alternatives or []
    # If none matches, the node has labels that are not in the settings, and any of the alternatives may apply.
    here = [one for one in terms if _matches(one.above, settings)] or terms
    if not here or not all(one.below for one in here):
        return affinity
    required = {_REQUIRED: {"nodeSelectorTerms": [one.below for one in here]}}
    return affinity | {"nodeAffinity": affinity.get("nodeAffinity", {}) | required}


def _added_tolerations(spec: Spec, annotated: _Annotated, settings: LinkSettings) -> list[Spec]:
    """Tolerations that were added after the annotation was written, except those for the virtual node or any taint."""
    upper_only = {None, "", settings.taint, *_NODE_FAILURES}
    known = annotated.tolerations or ()
    return [one for one in spec.get("tolerations") or () if one.get("key") not in upper_only and one not in known]


def _lower_part(spec: Spec, settings: LinkSettings) -> Spec:
    affinity = dict(spec.get("affinity") or {})
    if nodes := affinity.pop("nodeAffinity", None):
        affinity |= {"nodeAffinity": left} if (left := _node_affinity(nodes, settings)) else {}
    return {
        "nodeSelector": {k: v for k, v in (spec.get("nodeSelector") or {}).items() if k not in settings.node_labels},
        "affinity": affinity,
        "tolerations": [one for one in spec.get("tolerations") or () if one.get("key") != settings.taint],
    }


def _node_affinity(affinity: Spec, settings: LinkSettings) -> Spec:
    left: Spec = {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    # Terms are alternatives. One that the virtual node doesn't match is dropped: the pod stays in this cluster. If no
    # term matches, the pod was bound to the node by nodeName, against its affinity.
    matching = [rest for term in terms if (rest := _lower_term(term, settings)) is not None]
    if matching and all(matching):
        left[_REQUIRED] = {"nodeSelectorTerms": matching}
    preferences = [(one, _lower_term(one.get("preference") or {}, settings)) for one in affinity.get(_PREFERRED) or ()]
    if preferred := [one | {"preference": rest} for one, rest in preferences if rest]:
        left[_PREFERRED] = preferred
    return left


def _lower_term(term: Spec, settings: LinkSettings) -> Spec | None:
    """The conditions of a term on lower nodes; None if the virtual node does not match the others."""
    expressions = term.get("matchExpressions") or ()
    upper = [one for one in expressions if one.get("key") in settings.node_labels]
    is_empty = not expressions and not term.get("matchFields")  # a term without conditions matches no node
    if is_empty or not _matches({**term, "matchExpressions": upper}, settings):
        return None
    return {"matchExpressions": rest} if (rest := [one for one in expressions if one not in upper]) else {}


def _matches(term: Spec, settings: LinkSettings) -> bool:
    """Whether the virtual node matches a term."""
    labels, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return _all_match(labels, settings.node_labels) and _all_match(names, {"metadata.name": settings.node})


def _all_match(expressions: Iterable[Spec], labels: Mapping[str, str]) -> bool:
    operators = (*selectors.SET_BASED, selectors.Operator.GT, selectors.Operator.LT)
    try:
        read = msgspec.convert(list(expressions), list[selectors.Expression])
        return all(selectors.of_expression(one, operators).matches(labels) for one in read)
    except (msgspec.ValidationError, selectors.SelectorError):
        return False
