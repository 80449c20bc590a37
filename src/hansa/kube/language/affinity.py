"""nodeSelector and node affinity: which nodes a pod may run on and which it prefers, as kube-scheduler decides it.

A requirement with an unknown operator or a bad value makes its own term match no node; other terms still count.
Taints, resources and pod affinity are left to `scheduling`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from hansa.kube.language import field_selectors, selectors
from hansa.runtime import errors


class AffinityError(errors.HansaError, ValueError):
    """A pod's node constraints don't have the form of the API."""


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """A term of a node selector: requirements on a node's labels and name that must all match."""

    labels: selectors.Selector
    fields: field_selectors.FieldSelector

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node with this name and these labels matches every requirement."""
        return self.labels.matches(labels) and (not self.fields.terms or self.fields.matches({_NAME_FIELD: name}))


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which at least one must match; without terms no node is selected."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node with this name and these labels matches one of the terms."""
        return any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Preference:
    """A preferred term and its weight."""

    weight: int
    term: NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """The required and preferred node affinity of a pod, with its nodeSelector."""

    labels: selectors.Selector = selectors.EVERYTHING
    required: NodeSelector | None = None
    preferred: tuple[Preference, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the pod may run on a node with this name and these labels."""
        return self.labels.matches(labels) and (self.required is None or self.required.matches(name, labels))

    def score(self, name: str, labels: Mapping[str, str]) -> int:
        """The sum of the weights of the preferred terms that the node matches."""
        return sum(preference.weight for preference in self.preferred if preference.term.matches(name, labels))


def of_pod_spec(spec: Mapping[str, Any]) -> NodeAffinity:
    """Read nodeSelector and affinity.nodeAffinity of a pod's spec in its JSON form."""
    pod = _converted(spec, _PodSpec)
    affinity = (pod.affinity.node_affinity if pod.affinity else None) or _NO_AFFINITY
    required, preferred = affinity.required, affinity.preferred or ()
    return NodeAffinity(
        selectors.of_labels(pod.node_selector or {}),
        None if required is None else _node_selector(required),
        tuple(Preference(one.weight, term) for one in preferred if one.weight and (term := _term(one.preference))),
    )


def of_node_selector(selector: Mapping[str, Any]) -> NodeSelector:
    """Read a NodeSelector in its JSON form, as in a pod's required affinity or a volume's."""
    return _node_selector(_converted(selector, _NodeSelector))


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    match_expressions: tuple[selectors.Expression, ...] | None = ()
    match_fields: tuple[selectors.Expression, ...] | None = ()


class _NodeSelector(msgspec.Struct, frozen=True, rename="camel"):
    node_selector_terms: tuple[_Term, ...] | None = ()


class _Preference(msgspec.Struct, frozen=True):
    weight: int
    preference: _Term


class _NodeAffinity(msgspec.Struct, frozen=True):
    required: _NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[_Preference, ...] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    node_affinity: _NodeAffinity | None = None


class _PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: dict[str, str] | None = None
    affinity: _Affinity | None = None


_T = TypeVar("_T")
_NAME_FIELD: Final = "metadata.name"
_OPERATORS: Final = (*selectors.SET_BASED, selectors.Operator.GT, selectors.Operator.LT)
_NO_AFFINITY: Final = _NodeAffinity()


def _converted(obj: Mapping[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError as error:
        raise AffinityError(f"the node constraints of a pod cannot be read: {error}") from None


def _node_selector(selector: _NodeSelector) -> NodeSelector:
    return NodeSelector(tuple(term for one in selector.node_selector_terms or () if (term := _term(one))))


def _term(term: _Term) -> NodeSelectorTerm | None:
    """The parsed term; None if it is empty or a requirement is invalid, because then it matches no node."""
    if not term.match_expressions and not term.match_fields:
        return None
    try:
        labels = selectors.Selector(
            tuple(selectors.of_expression(one, _OPERATORS) for one in term.match_expressions or ())
        )
        fields = field_selectors.FieldSelector(tuple(_field(one) for one in term.match_fields or ()))
    except selectors.SelectorError:
        return None
    return NodeSelectorTerm(labels, fields)


def _field(expression: selectors.Expression) -> field_selectors.FieldTerm:
    match expression.operator, expression.values:
        case "In" | "NotIn", (value,):
            return field_selectors.FieldTerm(expression.key, value, negated=expression.operator == "NotIn")
        case _:
            raise selectors.SelectorError(f"matchFields needs In or NotIn and one value, not {expression}")
