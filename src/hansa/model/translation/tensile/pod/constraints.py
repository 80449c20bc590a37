"""Which nodes of the lower cluster a pod may run on.

With the annotation `clusterSelector` these are the parked constraints. Without it they are the pod's own, less what
speaks of the virtual node: the upper scheduler has seen to that already, and no node below could ever meet it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hansa.kube.language import selectors
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.model.translation.common.pod.spec import Spec

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# The webhook lets every pod tolerate these on a virtual node for ever.
_NODE_TROUBLE: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def restore_constraints(spec: Spec, pod: Object, link: Link) -> Spec:
    """Put back what was parked in the annotation, or drop what was meant for the upper scheduler."""
    parked = _parked(pod.annotations.get(keys.CLUSTER_SELECTOR))
    known = link_settings.of(link)
    wanted = _below(spec, known) if parked is None else _put_back(spec, parked, known)
    others = {name: value for name, value in spec.items() if name not in wanted}
    return others | {name: value for name, value in wanted.items() if value}


class _Alternative(msgspec.Struct, gc=False):
    """A term that asks for some nodes in some clusters."""

    above: dict[str, Any] = {}  # of the virtual node
    below: dict[str, Any] = {}  # of nodes of its cluster


class _Parked(msgspec.Struct, gc=False, rename="camel"):
    """What may be parked. Whatever else an annotation says must not get into a spec."""

    node_selector: dict[str, str] | None = None
    affinity: dict[str, dict[str, Any]] | None = None
    tolerations: list[dict[str, Any]] | None = None
    alternatives: list[_Alternative] | None = None


def _parked(text: str | None) -> _Parked | None:
    """What the annotation says; one that cannot be read says nothing."""
    try:
        return None if text is None else msgspec.json.decode(text, type=_Parked)
    except msgspec.DecodeError:
        return None


def _put_back(spec: Spec, parked: _Parked, known: LinkSettings) -> Spec:
    """The parked constraints. How pods relate to each other is not parked, so it stays as the pod says it."""
    relations = {name: value for name, value in (spec.get("affinity") or {}).items() if name != "nodeAffinity"}
    return {
        "nodeSelector": parked.node_selector,
        "affinity": relations | _parked_affinity(parked, known),
        "tolerations": [*(parked.tolerations or ()), *_late(spec, parked, known)],
    }


def _parked_affinity(parked: _Parked, known: LinkSettings) -> Spec:
    """What was parked, with those of its alternatives that are for this cluster."""
    affinity, terms = parked.affinity or {}, parked.alternatives or []
    # If none is met, the node has labels that we were not told of, and each of them may be the one.
    here = [one for one in terms if _is_met(one.above, known)] or terms
    if not here or not all(one.below for one in here):
        return affinity
    required = {_REQUIRED: {"nodeSelectorTerms": [one.below for one in here]}}
    return affinity | {"nodeAffinity": affinity.get("nodeAffinity", {}) | required}


def _late(spec: Spec, parked: _Parked, known: LinkSettings) -> list[Spec]:
    """Tolerations that came after the others were parked; those of the virtual node, or of anything, stay above."""
    above = {None, "", known.taint, *_NODE_TROUBLE}
    early = parked.tolerations or ()
    return [one for one in spec.get("tolerations") or () if one.get("key") not in above and one not in early]


def _below(spec: Spec, known: LinkSettings) -> Spec:
    affinity = dict(spec.get("affinity") or {})
    if nodes := affinity.pop("nodeAffinity", None):
        affinity |= {"nodeAffinity": left} if (left := _node_affinity(nodes, known)) else {}
    return {
        "nodeSelector": {k: v for k, v in (spec.get("nodeSelector") or {}).items() if k not in known.node_labels},
        "affinity": affinity,
        "tolerations": [one for one in spec.get("tolerations") or () if one.get("key") != known.taint],
    }


def _node_affinity(affinity: Spec, known: LinkSettings) -> Spec:
    left: Spec = {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    # One term that is met is enough, and one that is not met here never will be: the pod stays here. If none is, it
    # was put here by name, against its own word.
    met = [rest for term in terms if (rest := _rest(term, known)) is not None]
    if met and all(met):
        left[_REQUIRED] = {"nodeSelectorTerms": met}
    liked = [(one, _rest(one.get("preference") or {}, known)) for one in affinity.get(_PREFERRED) or ()]
    if preferred := [one | {"preference": rest} for one, rest in liked if rest]:
        left[_PREFERRED] = preferred
    return left


def _rest(term: Spec, known: LinkSettings) -> Spec | None:
    """What a term demands of a node below, after what it demands of the virtual node; None if that is not met."""
    expressions = term.get("matchExpressions") or ()
    above = [one for one in expressions if one.get("key") in known.node_labels]
    is_empty = not expressions and not term.get("matchFields")  # it demands nothing, and is met by no node
    if is_empty or not _is_met({**term, "matchExpressions": above}, known):
        return None
    return {"matchExpressions": rest} if (rest := [one for one in expressions if one not in above]) else {}


def _is_met(term: Spec, known: LinkSettings) -> bool:
    """Whether the virtual node is as a term demands it."""
    labels, names = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return _holds(labels, known.node_labels) and _holds(names, {"metadata.name": known.node})


def _holds(expressions: Iterable[Spec], labels: Mapping[str, str]) -> bool:
    operators = (*selectors.SET_BASED, selectors.Operator.GT, selectors.Operator.LT)
    try:
        read = msgspec.convert(list(expressions), list[selectors.Expression])
        return all(selectors.of_expression(one, operators).matches(labels) for one in read)
    except (msgspec.ValidationError, selectors.SelectorError):
        return False
