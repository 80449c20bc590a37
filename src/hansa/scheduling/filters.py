"""Filters on a node's own state: readiness, cordon, taints, labels, host ports. Reasons are kube-scheduler's.

Resources are checked by `evaluation`; pod affinity and topology spread are in `pod_affinity`.
"""

from collections.abc import Iterable
from typing import Final

from hansa.kube.language import affinity, field_selectors, selectors, tolerations
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node, Shape
from hansa.scheduling.plugins import FilterReason, NodeCheck
from hansa.scheduling.pod_request import PodRequest

_NO_PORT: Final = "node(s) didn't have free ports for the requested pod ports"
_NO_MATCH: Final = "node(s) didn't match Pod's node affinity/selector"
CORDON: Final = tolerations.Taint("node.kubernetes.io/unschedulable", effect=tolerations.Effect.NO_SCHEDULE)


def state(request: PodRequest, _view: ClusterView) -> NodeCheck:
    """A node must be ready and not cordoned."""
    ignores_cordon = not tolerations.untolerated((CORDON,), request.tolerations)

    def reason(shape: Shape) -> FilterReason:
        if not shape.is_ready:
            return "node(s) were not ready"
        return "node(s) were unschedulable" if shape.is_cordoned and not ignores_cordon else ""

    return NodeCheck(reason)


def taints(request: PodRequest, _view: ClusterView) -> NodeCheck:
    """A pod must tolerate the taints of a node."""

    def reason(shape: Shape) -> FilterReason:
        untolerated = tolerations.untolerated(shape.taints, request.tolerations) if shape.taints else ()
        if not untolerated:
            return ""
        first = untolerated[0]
        return f"node(s) had untolerated taint {{{first.key}: {first.value}}}"

    return NodeCheck(reason)


def labels(request: PodRequest, view: ClusterView) -> NodeCheck | None:
    """A node must match nodeSelector and required node affinity."""
    wanted = request.affinity
    if _is_empty(wanted):
        return None
    if not names_nodes(wanted, view):
        return NodeCheck(lambda shape: "" if wanted.matches("", shape.labels) else _NO_MATCH)
    names = _named_nodes(wanted, view)
    if names is None:
        return NodeCheck(node=lambda node: "" if is_wanted(request, node) else _NO_MATCH)
    # A pod that names its nodes, such as a DaemonSet's, must not cost a scan of all nodes.
    shapes = {node.shape for name in names if (node := view.node(name)) is not None}
    return NodeCheck(
        lambda shape: "" if shape in shapes else _NO_MATCH,
        lambda node: "" if node.name in names and is_wanted(request, node) else _NO_MATCH,
    )


def host_ports(request: PodRequest, view: ClusterView) -> NodeCheck | None:
    """No other pod may have one of the pod's host ports."""
    wanted = [(port, taken) for port in request.host_ports for taken in view.host_ports(port.number)]
    excluded = {name for port, (taken, counts) in wanted if port.conflicts_with(taken) for name in counts}
    return NodeCheck(node=lambda node: _NO_PORT if node.name in excluded else "") if excluded else None


def names_nodes(wanted: affinity.NodeAffinity, view: ClusterView) -> bool:
    """Whether the constraints can distinguish nodes of one shape."""
    terms = wanted.required.terms if wanted.required else ()
    conditions = [*wanted.labels.requirements, *(one for term in terms for one in term.labels.requirements)]
    return any(term.fields.terms for term in terms) or any(one.key in view.own_labels for one in conditions)


def is_wanted(request: PodRequest, node: Node) -> bool:
    """Whether a node matches nodeSelector and required node affinity."""
    return _is_empty(request.affinity) or request.affinity.matches(node.name, node.labels())


def _named_nodes(wanted: affinity.NodeAffinity, view: ClusterView) -> frozenset[str] | None:
    """The names of all nodes that can match; None if the constraints don't name nodes."""
    if (names := _names(wanted.labels, (), view)) is not None or wanted.required is None:
        return names
    every = [_names(term.labels, term.fields.terms, view) for term in wanted.required.terms]
    known = [names for names in every if names is not None]
    return frozenset[str]().union(*known) if len(known) == len(every) else None


def _names(
    labels: selectors.Selector, fields: Iterable[field_selectors.FieldTerm], view: ClusterView
) -> frozenset[str] | None:
    for field in fields:
        if not field.negated:
            return frozenset({field.value})
    for one in labels.requirements:
        if one.key in view.own_labels and one.operator in (selectors.Operator.EQUALS, selectors.Operator.IN):
            return frozenset[str]().union(*(view.named(one.key, value) for value in one.values))
    return None


def _is_empty(wanted: affinity.NodeAffinity) -> bool:
    return wanted.required is None and not wanted.labels.requirements
