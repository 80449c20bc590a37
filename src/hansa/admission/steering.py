"""Which of a pod's node constraints are for the upper scheduler, and which for the cluster where it will run.

Node labels are those of the lower nodes, unless they tell one virtual node from another. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansa.model import keys

HOSTNAME: Final = "kubernetes.io/hostname"
VIRTUAL: Final = "virtual-kubelet"  # the value of the label `type` on virtual nodes
Term = dict[str, Any]  # a NodeSelectorTerm in its JSON form
Halves = tuple[Term, Term]  # what a term asks of a virtual node, and of a node below; an empty one always holds


@dataclass(frozen=True, slots=True)
class Steering:
    """What tells the upper cluster's nodes apart: label keys by setting, and the nodes' own names."""

    keys: frozenset[str] = frozenset({keys.CLUSTER_ID})
    is_node: Callable[[str], bool] = lambda _: False

    def has_label(self, key: str, values: Iterable[str]) -> bool:
        """Whether a condition on this label is for the upper scheduler."""
        if key in self.keys:
            return True
        if key == HOSTNAME:
            return any(map(self.is_node, values))
        return key == keys.VIRTUAL_KUBELET_TYPE and set(values) == {VIRTUAL}

    def labels(self, selector: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """A nodeSelector in two: for above and for below."""
        above = {key: value for key, value in selector.items() if self.has_label(key, (value,))}
        return above, {key: value for key, value in selector.items() if key not in above}

    def term(self, term: Term) -> Halves:
        """A term in two. A node's name (matchFields) is always one of the cluster where the pod was created."""
        expressions = term.get("matchExpressions") or []
        above = [one for one in expressions if self.has_label(one["key"], one.get("values") or ())]
        below = [one for one in expressions if one not in above]
        return _term(above, term.get("matchFields") or []), _term(below, [])

    def terms(self, terms: Sequence[Term]) -> tuple[list[Term], list[Halves]]:
        """Terms of which one must hold: what that asks of virtual nodes, and what then must hold below.

        Only terms that ask for other nodes in other clusters keep their upper half: where they are met decides.
        """
        halves = [self.term(term) for term in terms]
        above, below = _distinct(one for one, _ in halves), _distinct(other for _, other in halves)
        if len(above) == 1 or len(below) == 1:
            halves = [] if {} in below else [({}, one) for one in below]
        return ([] if {} in above else above), halves


def has_conditions(term: Term) -> bool:
    """Whether a term can hold at all: one without conditions selects no node, and adds nothing to others."""
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _term(expressions: list[Any], fields: list[Any]) -> Term:
    parts = {"matchExpressions": expressions, "matchFields": fields}
    return {name: conditions for name, conditions in parts.items() if conditions}


def _distinct(terms: Iterable[Term]) -> list[Term]:
    found: list[Term] = []
    for term in terms:
        if term not in found:
            found.append(term)
    return found
