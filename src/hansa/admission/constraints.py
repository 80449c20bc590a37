"""Moves a pod's node constraints into the annotation `clusterSelector`, from which they apply in the lower cluster.

Pod in, pod out, in their JSON form, and idempotent: what the annotation holds already is kept. Restoring the
constraints in the lower pod is left to `model.translation.tensile`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.admission import constraint_split
from hansa.admission.constraint_split import SplitTerm, Term, UpperNodes
from hansa.admission.mutation import Refused
from hansa.kube.language import affinity, selectors, tolerations
from hansa.model import annotation_json, keys

Pod = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS: Final = (*selectors.SET_BASED, selectors.Operator.GT, selectors.Operator.LT)
ANNOTATION: Final = f"metadata.annotations[{keys.CLUSTER_SELECTOR}]"
# The virtual node of an unreachable cluster becomes NotReady. Its pods keep running there, so they are not evicted.
NODE_FAILURES: Final = tuple(
    {"key": key, "operator": "Exists", "effect": tolerations.Effect.NO_EXECUTE.value}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


def move_constraints(pod: Pod, upper: UpperNodes) -> Pod:
    """The pod with the constraints on upper nodes in its spec, and those on lower nodes in the annotation."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    _validate(spec, "spec.")
    annotated = _annotated(annotations.get(keys.CLUSTER_SELECTOR))
    kept, moved, required = _split(spec, upper)
    lower = _merged(annotated, moved, required) | _lower_tolerations(
        annotated, spec, is_first=keys.CLUSTER_SELECTOR not in annotations
    )
    order = ("nodeSelector", "affinity", "alternatives", "tolerations")
    text = msgspec.json.encode({name: lower[name] for name in order if lower.get(name)}).decode()
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, keys.CLUSTER_SELECTOR: text}},
        "spec": {name: value for name, value in spec.items() if name not in kept}
        | _without_empty(kept)
        | {"tolerations": _upper_tolerations(spec.get("tolerations") or [])},
    }


def _split(spec: Mapping[str, Any], upper: UpperNodes) -> tuple[dict[str, Any], dict[str, Any], list[SplitTerm]]:
    """nodeSelector and affinity to keep, those to move, and the required terms for the lower cluster."""
    upper_labels, lower_labels = upper.split_selector(spec.get("nodeSelector") or {})
    whole = spec.get("affinity") or {}
    nodes = whole.get("nodeAffinity") or {}
    terms = [
        one
        for one in (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
        if constraint_split.has_conditions(one)
    ]
    upper_terms, lower_terms = upper.split_terms(terms)
    preferred = [(one["weight"], *upper.split_term(one["preference"])) for one in nodes.get(PREFERRED) or []]
    kept = _node_affinity(upper_terms, _preferences((weight, half) for weight, half, _ in preferred))
    moved = _node_affinity([], _preferences((weight, half) for weight, _, half in preferred))
    if not terms:
        kept |= _without_empty({REQUIRED: nodes.get(REQUIRED)})  # it matches no node, upper or lower
    others = {name: value for name, value in whole.items() if name != "nodeAffinity"}
    return (
        {"nodeSelector": upper_labels, "affinity": others | _without_empty({"nodeAffinity": kept})},
        {"nodeSelector": lower_labels, "affinity": _without_empty({"nodeAffinity": moved})},
        lower_terms,
    )


def _preferences(weighted: Iterable[tuple[int, Term]]) -> list[dict[str, Any]]:
    return [{"weight": weight, "preference": term} for weight, term in weighted if term]


def _node_affinity(terms: list[Term], preferred: list[dict[str, Any]]) -> dict[str, Any]:
    return _without_empty({REQUIRED: _without_empty({"nodeSelectorTerms": terms}), PREFERRED: preferred})


def _merged(annotated: Mapping[str, Any], moved: Mapping[str, Any], required: list[SplitTerm]) -> dict[str, Any]:
    """The annotation's constraints and the ones to move, such that both must match."""
    before, now = annotated.get("nodeSelector") or {}, moved.get("nodeSelector") or {}
    if clash := [key for key in now if before.get(key, now[key]) != now[key]]:
        remedy = f"must not differ from the annotation {keys.CLUSTER_SELECTOR} in {', '.join(clash)}"
        raise Refused("spec.nodeSelector", {key: now[key] for key in clash}, remedy)
    affinity_before, affinity_now = annotated.get("affinity") or {}, moved.get("affinity") or {}
    nodes_before, nodes_now = affinity_before.get("nodeAffinity") or {}, affinity_now.get("nodeAffinity") or {}
    terms = _both(_annotated_terms(annotated), required)
    depends_on_cluster = any(upper for upper, _ in terms)
    preferences = [*(nodes_before.get(PREFERRED) or []), *(nodes_now.get(PREFERRED) or [])]
    nodes = _node_affinity([] if depends_on_cluster else [lower for _, lower in terms], preferences)
    alternatives = [_without_empty({"above": upper, "below": lower}) for upper, lower in terms]
    return {
        "nodeSelector": {**before, **now},
        "affinity": _without_empty({**affinity_before, "nodeAffinity": nodes}),
        "alternatives": alternatives if depends_on_cluster else [],
    }


def _annotated_terms(annotated: Mapping[str, Any]) -> list[SplitTerm]:
    """The required terms in the annotation."""
    required = ((annotated.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    terms: list[SplitTerm] = [({}, one) for one in required.get("nodeSelectorTerms") or []]
    pairs = [(one.get("above") or {}, one.get("below") or {}) for one in annotated.get("alternatives") or []]
    return _both(pairs, terms)


def _both(one: list[SplitTerm], other: list[SplitTerm]) -> list[SplitTerm]:
    """Terms that match where one term of each list matches; an empty list always matches."""
    if not one or not other:
        return one or other
    return [(_joined(a, c), _joined(b, d)) for a, b in one for c, d in other]


def _joined(one: Term, other: Term) -> Term:
    parts = ("matchExpressions", "matchFields")
    return _without_empty({part: [*(one.get(part) or []), *(other.get(part) or [])] for part in parts})


def _lower_tolerations(annotated: Mapping[str, Any], spec: Mapping[str, Any], *, is_first: bool) -> dict[str, Any]:
    """All tolerations that the user wrote, without those that an earlier call added to the spec."""
    before, now = annotated.get("tolerations") or [], spec.get("tolerations") or []
    if is_first:
        return {"tolerations": now}
    return {"tolerations": [*before, *(one for one in now if one not in before and one not in NODE_FAILURES)]}


def _upper_tolerations(now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tolerates a NotReady virtual node without limit; first in the list, since the first that matches decides."""
    replaced = {(one["key"], one["effect"]) for one in NODE_FAILURES}
    return [*NODE_FAILURES, *(one for one in now if (one.get("key"), one.get("effect")) not in replaced)]


def _annotated(text: str | None) -> dict[str, Any]:
    """The constraints that the annotation holds already."""
    if text is None:
        return {}
    try:
        annotated = annotation_json.decode(text, dict[str, Any], longest=annotation_json.WHOLE)
    except annotation_json.AnnotationJsonError as error:
        raise Refused(ANNOTATION, annotation_json.shown(text), f"must be a JSON object: {error}") from None
    _validate(annotated, f"{ANNOTATION}.")
    terms = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": _alternatives(annotated)}}}}
    _validate(terms, f"{ANNOTATION}.alternatives.")
    return annotated


def _alternatives(annotated: Mapping[str, Any]) -> list[Term]:
    """The terms of both halves of all alternatives."""
    alternatives = annotated.get("alternatives") or []
    try:
        pairs = msgspec.convert(alternatives, list[dict[str, Term]])
    except msgspec.ValidationError as error:
        raise Refused(f"{ANNOTATION}.alternatives", alternatives, str(error)) from None
    return [one.get(half) or {} for one in pairs for half in ("above", "below")]


def _validate(constraints: Mapping[str, Any], path: str) -> None:
    """Refuse what the API server would refuse: it does not validate the annotation that constraints move to."""
    selector, given = constraints.get("nodeSelector"), constraints.get("affinity")
    try:
        affinity.of_pod_spec({"nodeSelector": selector})
        for key, value in (selector or {}).items():
            selectors.requirement(key, selectors.Operator.EQUALS, (value,))
    except (affinity.AffinityError, selectors.SelectorError) as error:
        raise Refused(f"{path}nodeSelector", selector, str(error)) from None
    try:
        affinity.of_pod_spec({"affinity": given})
        for expression in _expressions((given or {}).get("nodeAffinity") or {}):
            selectors.of_expression(msgspec.convert(expression, selectors.Expression), NODE_OPERATORS)
    except (affinity.AffinityError, selectors.SelectorError) as error:
        raise Refused(f"{path}affinity", given, str(error)) from None
    try:
        msgspec.convert(constraints.get("tolerations") or [], list[tolerations.Toleration])
    except msgspec.ValidationError as error:
        raise Refused(f"{path}tolerations", constraints["tolerations"], str(error)) from None


def _expressions(nodes: Mapping[str, Any]) -> Iterable[Any]:
    terms = [*((nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or [])]
    terms += [one["preference"] for one in nodes.get(PREFERRED) or []]
    return (expression for term in terms for expression in term.get("matchExpressions") or [])


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ({}, [], None)}
