"""Splits a pod's node constraints into those on virtual nodes and those on the nodes of the lower cluster. Pure.

Used by `constraints`. A node label is one of the lower nodes unless it distinguishes nodes of the upper cluster.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansa.model import keys

HOSTNAME: Final = "kubernetes.io/hostname"
VIRTUAL: Final = "virtual-kubelet"  # the value of the label `type` on virtual nodes
Term = dict[str, Any]  # a NodeSelectorTerm in its JSON form
SplitTerm = tuple[Term, Term]  # a term's conditions on upper and on lower nodes; an empty one always matches


@dataclass(frozen=True, slots=True)
class UpperNodes:
    """Which labels select nodes of the upper cluster: keys that are configured, and the names of its nodes."""

    label_keys: frozenset[str] = frozenset({keys.CLUSTER_ID})
    is_node: Callable[[str], bool] = lambda _: False

    def has_label(self, key: str, values: Iterable[str]) -> bool:
        """Whether a condition on this label and these values is for the upper scheduler."""
        if key in self.label_keys:
            return True
        if key == HOSTNAME:
            return any(map(self.is_node, values))
        return key == keys.VIRTUAL_KUBELET_TYPE and set(values) == {VIRTUAL}

    def split_selector(self, selector: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """A nodeSelector split into its upper and its lower labels."""
        upper = {key: value for key, value in selector.items() if self.has_label(key, (value,))}
        return upper, {key: value for key, value in selector.items() if key not in upper}

    def split_term(self, term: Term) -> SplitTerm:
        """A term split in two. A node name (matchFields) is always one of the cluster where the pod was created."""
        expressions = term.get("matchExpressions") or []
        upper = [one for one in expressions if self.has_label(one["key"], one.get("values") or ())]
        lower = [one for one in expressions if one not in upper]
        return _term(upper, term.get("matchFields") or []), _term(lower, [])

    def split_terms(self, terms: Sequence[Term]) -> tuple[list[Term], list[SplitTerm]]:
        """Terms of which one must match: those for virtual nodes, and split terms for the lower cluster.

        A split term keeps its upper half only if terms differ in both halves: the lower cluster then takes the terms
        whose upper half matches its own virtual node.
        """
        split = [self.split_term(term) for term in terms]
        upper, lower = _distinct(half for half, _ in split), _distinct(half for _, half in split)
        if len(upper) == 1 or len(lower) == 1:
            split = [] if {} in lower else [({}, one) for one in lower]
        return ([] if {} in upper else upper), split


def has_conditions(term: Term) -> bool:
    """Whether a term can match at all: one without conditions matches no node."""
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
