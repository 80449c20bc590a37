"""Filters that look at a node alone: is it ready, may pods come, does it carry the labels, are its taints tolerated.
Room is no filter: the judge finds nodes by it. Relations between pods have a module of their own.
"""

from collections.abc import Iterable
from typing import Final

from hansa.kube.language import affinity, field_selectors, selectors, tolerations
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import OWN_LABELS, Node, Shape
from hansa.scheduling.plugins import Sieve, Why
from hansa.scheduling.pod_request import PodRequest

_UNWANTED: Final = "without the labels that it selects"
_CORDON: Final = tolerations.Taint("node.kubernetes.io/unschedulable", effect=tolerations.Effect.NO_SCHEDULE)


def state(ask: PodRequest, _view: ClusterView) -> Sieve:
    """A node must be ready and take new pods."""
    ignores_cordon = not tolerations.untolerated((_CORDON,), ask.tolerations)

    def why(shape: Shape) -> Why:
        if not shape.is_ready:
            return "not ready"
        return "cordoned" if shape.is_cordoned and not ignores_cordon else ""

    return Sieve(why)


def taints(ask: PodRequest, _view: ClusterView) -> Sieve:
    """A node's taints must be tolerated."""

    def why(shape: Shape) -> Why:
        untolerated = tolerations.untolerated(shape.taints, ask.tolerations) if shape.taints else ()
        if not untolerated:
            return ""
        first = untolerated[0]
        return f"tainted {first.key}={first.value}" if first.value else f"tainted {first.key}"

    return Sieve(why)


def labels(ask: PodRequest, view: ClusterView) -> Sieve | None:
    """A node must meet nodeSelector and required node affinity."""
    wanted = ask.affinity
    if _demands_nothing(wanted):
        return None
    if not names_nodes(wanted):
        return Sieve(lambda shape: "" if wanted.matches("", shape.labels) else _UNWANTED)
    names = _pinned(wanted, view)
    if names is None:
        return Sieve(node=lambda node: "" if is_wanted(ask, node) else _UNWANTED)
    # One pinned pod must not make us look at every node.
    shapes = {node.shape for name in names if (node := view.node(name)) is not None}
    return Sieve(
        lambda shape: "" if shape in shapes else _UNWANTED,
        lambda node: "" if node.name in names and is_wanted(ask, node) else _UNWANTED,
    )


def names_nodes(wanted: affinity.NodeAffinity) -> bool:
    """Whether the constraints tell nodes of one shape apart."""
    terms = wanted.required.terms if wanted.required else ()
    conditions = [*wanted.labels.requirements, *(one for term in terms for one in term.labels.requirements)]
    return any(term.fields.terms for term in terms) or any(one.key in OWN_LABELS for one in conditions)


def is_wanted(ask: PodRequest, node: Node) -> bool:
    """Whether a node meets what the ask demands of its labels."""
    return _demands_nothing(ask.affinity) or ask.affinity.matches(node.name, node.labels())


def _pinned(wanted: affinity.NodeAffinity, view: ClusterView) -> frozenset[str] | None:
    """The names of all nodes that can be meant, where the constraints name some."""
    if (names := _names(wanted.labels, (), view)) is not None or wanted.required is None:
        return names
    every = [_names(term.labels, term.fields.terms, view) for term in wanted.required.terms]
    known = [names for names in every if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(every) else None


def _names(
    labels: selectors.Selector, fields: Iterable[field_selectors.Term], view: ClusterView
) -> frozenset[str] | None:
    for field in fields:
        if not field.negated:
            return frozenset({field.value})
    for one in labels.requirements:
        if one.key in OWN_LABELS and one.operator in (selectors.Operator.EQUALS, selectors.Operator.IN):
            return frozenset[str]().union(*(view.named(one.key, value) for value in one.values))
    return None


def _demands_nothing(wanted: affinity.NodeAffinity) -> bool:
    return wanted.required is None and not wanted.labels.requirements
