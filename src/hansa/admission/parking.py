"""Moves a pod's node constraints into the annotation `clusterSelector`, from where they apply in the lower cluster.

Pod in, pod out, in their JSON form; what was moved before is kept, so a second time changes nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.admission import steering
from hansa.admission.steering import Halves, Steering, Term
from hansa.kube import affinity, selectors, tolerations
from hansa.model import keys
from hansa.runtime import errors

Pod = dict[str, Any]
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NODE_OPERATORS: Final = (*selectors.SET_BASED, selectors.Operator.GT, selectors.Operator.LT)
# A lower cluster that is away makes its node NotReady. Its pods go on running there, so they stay.
FOR_EVER: Final = tuple(
    {"key": key, "operator": "Exists", "effect": tolerations.Effect.NO_EXECUTE.value}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
)


class Malformed(errors.HansaError):
    """A pod whose constraints cannot be understood."""


def park(pod: Pod, how: Steering) -> Pod:
    """The pod with what steers the upper scheduler in its spec, and the rest in the annotation."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    _check(spec)
    parked = _parked(annotations.get(keys.CLUSTER_SELECTOR))
    kept, moved, halves = _split(spec, how)
    wanted = _merged(parked, moved, halves) | _tolerations(
        parked, spec, is_first=keys.CLUSTER_SELECTOR not in annotations
    )
    order = ("nodeSelector", "affinity", "alternatives", "tolerations")
    text = msgspec.json.encode({name: wanted[name] for name in order if wanted.get(name)}).decode()
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, keys.CLUSTER_SELECTOR: text}},
        "spec": {name: value for name, value in spec.items() if name not in kept}
        | _without_empty(kept)
        | {"tolerations": _staying(spec.get("tolerations") or [])},
    }


def _split(spec: Mapping[str, Any], how: Steering) -> tuple[dict[str, Any], dict[str, Any], list[Halves]]:
    """nodeSelector and affinity, in two: for above and for below; the required terms for below stand apart."""
    labels_above, labels_below = how.labels(spec.get("nodeSelector") or {})
    whole = spec.get("affinity") or {}
    nodes = whole.get("nodeAffinity") or {}
    terms = [one for one in (nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or [] if steering.has_conditions(one)]
    above, below = how.terms(terms)
    liked = [(one["weight"], *how.term(one["preference"])) for one in nodes.get(PREFERRED) or []]
    kept = _node_affinity(above, _liked((weight, one) for weight, one, _ in liked))
    moved = _node_affinity([], _liked((weight, one) for weight, _, one in liked))
    if not terms:
        kept |= _without_empty({REQUIRED: nodes.get(REQUIRED)})  # it selects no node, above or below
    others = {name: value for name, value in whole.items() if name != "nodeAffinity"}
    return (
        {"nodeSelector": labels_above, "affinity": others | _without_empty({"nodeAffinity": kept})},
        {"nodeSelector": labels_below, "affinity": _without_empty({"nodeAffinity": moved})},
        below,
    )


def _liked(preferences: Iterable[tuple[int, Term]]) -> list[dict[str, Any]]:
    return [{"weight": weight, "preference": term} for weight, term in preferences if term]


def _node_affinity(terms: list[Term], preferred: list[dict[str, Any]]) -> dict[str, Any]:
    return _without_empty({REQUIRED: _without_empty({"nodeSelectorTerms": terms}), PREFERRED: preferred})


def _merged(parked: Mapping[str, Any], moved: Mapping[str, Any], halves: list[Halves]) -> dict[str, Any]:
    """What was parked before and what comes now: both must hold."""
    before, now = parked.get("nodeSelector") or {}, moved.get("nodeSelector") or {}
    if clash := [key for key in now if before.get(key, now[key]) != now[key]]:
        raise Malformed(f"spec.nodeSelector and the annotation {keys.CLUSTER_SELECTOR} differ in {', '.join(clash)}")
    affinity_before, affinity_now = parked.get("affinity") or {}, moved.get("affinity") or {}
    nodes_before, nodes_now = affinity_before.get("nodeAffinity") or {}, affinity_now.get("nodeAffinity") or {}
    wanted = _both(_halves(parked), halves)
    depend = any(above for above, _ in wanted)  # on the cluster
    preferences = [*(nodes_before.get(PREFERRED) or []), *(nodes_now.get(PREFERRED) or [])]
    nodes = _node_affinity([] if depend else [below for _, below in wanted], preferences)
    return {
        "nodeSelector": {**before, **now},
        "affinity": _without_empty({**affinity_before, "nodeAffinity": nodes}),
        "alternatives": [_without_empty({"above": one, "below": other}) for one, other in wanted] if depend else [],
    }


def _halves(parked: Mapping[str, Any]) -> list[Halves]:
    """The required terms that an annotation holds already."""
    required = ((parked.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    terms: list[Halves] = [({}, one) for one in required.get("nodeSelectorTerms") or []]
    return _both([(one.get("above") or {}, one.get("below") or {}) for one in parked.get("alternatives") or []], terms)


def _both(one: list[Halves], other: list[Halves]) -> list[Halves]:
    """Terms that hold where one of each list holds; an empty list always holds."""
    if not one or not other:
        return one or other
    return [(_joined(a, c), _joined(b, d)) for a, b in one for c, d in other]


def _joined(one: Term, other: Term) -> Term:
    parts = ("matchExpressions", "matchFields")
    return _without_empty({part: [*(one.get(part) or []), *(other.get(part) or [])] for part in parts})


def _tolerations(parked: Mapping[str, Any], spec: Mapping[str, Any], *, is_first: bool) -> dict[str, Any]:
    """All tolerations count below, as they were written; those that we put into the spec ourselves do not."""
    before, now = parked.get("tolerations") or [], spec.get("tolerations") or []
    if is_first:
        return {"tolerations": now}
    return {"tolerations": [*before, *(one for one in now if one not in before and one not in FOR_EVER)]}


def _staying(now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tolerations above: for ever on a virtual node that is not ready, by the first that fits."""
    limits = {(one["key"], one["effect"]) for one in FOR_EVER}
    return [*FOR_EVER, *(one for one in now if (one.get("key"), one.get("effect")) not in limits)]


def _parked(text: str | None) -> dict[str, Any]:
    """What the annotation says already."""
    if text is None:
        return {}
    try:
        parked: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise Malformed(f"the annotation {keys.CLUSTER_SELECTOR} is not a JSON object: {error}") from None
    try:
        _check(parked)
        _check({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": _alternatives(parked)}}}})
    except Malformed as error:
        raise Malformed(f"the annotation {keys.CLUSTER_SELECTOR}: {error}") from None
    return parked


def _alternatives(parked: Mapping[str, Any]) -> list[Term]:
    """All terms of the alternatives, one after the other."""
    try:
        pairs = msgspec.convert(parked.get("alternatives") or [], list[dict[str, Term]])
    except msgspec.ValidationError as error:
        raise Malformed(f"the alternatives cannot be read: {error}") from None
    return [one.get(half) or {} for one in pairs for half in ("above", "below")]


def _check(constraints: Mapping[str, Any]) -> None:
    """Refuse what the API server would: once it is moved, nobody looks at it until the pod is created below."""
    try:
        affinity.of_pod_spec(constraints)
        msgspec.convert(constraints.get("tolerations") or [], list[tolerations.Toleration])
        for key, value in (constraints.get("nodeSelector") or {}).items():
            selectors.requirement(key, selectors.Operator.EQUALS, (value,))
        for expression in _expressions((constraints.get("affinity") or {}).get("nodeAffinity") or {}):
            selectors.of_expression(msgspec.convert(expression, selectors.Expression), NODE_OPERATORS)
    except (affinity.AffinityError, selectors.SelectorError) as error:
        raise Malformed(str(error)) from None
    except msgspec.ValidationError as error:
        raise Malformed(f"the tolerations of a pod cannot be read: {error}") from None


def _expressions(nodes: Mapping[str, Any]) -> Iterable[Any]:
    terms = [*((nodes.get(REQUIRED) or {}).get("nodeSelectorTerms") or [])]
    terms += [one["preference"] for one in nodes.get(PREFERRED) or []]
    return (expression for term in terms for expression in term.get("matchExpressions") or [])


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ({}, [], None)}
