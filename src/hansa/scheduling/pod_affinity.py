"""Filters for pod affinity, anti-affinity (of the pod and of placed pods) and topology spread constraints.

They decide as the cluster's own scheduler does, by the pods and reservations in the view. Reasons are kube-scheduler's.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hansa.kube.language import tolerations
from hansa.scheduling import filters
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.placed_pods import Labels
from hansa.scheduling.plugins import FilterReason, NodeCheck
from hansa.scheduling.pod_affinity_terms import Spread, Term
from hansa.scheduling.pod_request import PodRequest


def affinity(request: PodRequest, view: ClusterView) -> NodeCheck | None:
    """A node must be in a domain with pods that match the pod's affinity terms."""
    terms = request.pod_constraints.affinity
    if not terms:
        return None
    matching = set(_nodes_with(view, terms))
    domains = [_domains(view, matching, term.topology) for term in terms]
    if not any(domains) and all(term.matches(request.namespace, request.labels) for term in terms):
        # The first pod of a group that matches its own terms may use any node with the topology label.
        return _all_of(
            [_label_check(one.topology, lambda value: "" if value is not None else _AFFINITY, view) for one in terms]
        )
    return _all_of([_inside(term.topology, values, view) for term, values in zip(terms, domains, strict=True)])


def anti_affinity(request: PodRequest, view: ClusterView) -> NodeCheck | None:
    """A node must not be in a domain that is excluded by anti-affinity terms of the pod or of placed pods."""
    own: dict[str, set[str]] = {}
    for term in request.pod_constraints.anti_affinity:
        own.setdefault(term.topology, set()).update(_domains(view, _nodes_with(view, (term,)), term.topology))
    existing: dict[str, set[str]] = {}
    for term, counts in view.anti_affinity_terms(request.namespace):
        if term.selector.matches(request.labels):
            existing.setdefault(term.topology, set()).update(_domains(view, counts, term.topology))
    checks = [
        _outside(topology, values, reason, view)
        for excluded, reason in ((own, _ANTI_AFFINITY), (existing, _EXISTING_ANTI_AFFINITY))
        for topology, values in excluded.items()
        if values
    ]
    return _all_of(checks) if checks else None


def topology_spread(request: PodRequest, view: ClusterView) -> NodeCheck | None:
    """A node must be in a domain where one more pod keeps the skew within maxSkew."""
    spreads = request.pod_constraints.spreads
    return _all_of([_within_skew(one, request, view) for one in spreads]) if spreads else None


_AFFINITY = "node(s) didn't match pod affinity rules"
_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
_SPREAD = "node(s) didn't match pod topology spread constraints"


def _inside(topology: str, values: Collection[str], view: ClusterView) -> NodeCheck:
    return _label_check(topology, lambda value: "" if value in values else _AFFINITY, view)


def _outside(topology: str, values: Collection[str], reason: FilterReason, view: ClusterView) -> NodeCheck:
    return _label_check(topology, lambda value: reason if value in values else "", view)


def _within_skew(one: Spread, request: PodRequest, view: ClusterView) -> NodeCheck:
    domains = _DomainCounts(one, request, view)
    counts = domains.counts()
    lowest = domains.lowest(counts)
    own = one.selector.matches(request.labels)

    def reason(value: str | None) -> FilterReason:
        if value is None:
            return f"{_SPREAD} (missing required label {one.topology})"
        is_exceeded = counts.get(value, 0) + own - lowest > one.max_skew
        return f"{_SPREAD} (maxSkew {one.max_skew} over {one.topology})" if is_exceeded else ""

    return _label_check(one.topology, reason, view)


class _DomainCounts:
    """The pods that a constraint selects, by domain. Nodes without the labels of all constraints don't count."""

    def __init__(self, one: Spread, request: PodRequest, view: ClusterView) -> None:
        self._one, self._ask, self._view = one, request, view
        self._every = {spread.topology for spread in request.pod_constraints.spreads}
        self._is_by_node = not self._every.isdisjoint(view.own_labels) or filters.names_nodes(request.affinity, view)

    def counts(self) -> Mapping[str, int]:
        """The number of pods in each domain with any, without those that are being deleted."""
        found: dict[str, int] = {}
        if not self._one.selector.requirements:
            return found  # kube-scheduler counts no pods for a selector that selects all
        namespace = self._ask.namespace
        self._add(found, self._view.pods_by_labels(namespace), 1)
        self._add(found, self._view.leaving_by_labels(namespace), -1)
        return {domain: number for domain, number in found.items() if number}

    def _add(self, found: dict[str, int], pods: Iterable[tuple[Labels, Mapping[str, int]]], times: int) -> None:
        for labels, numbers in pods:
            if self._one.selector.matches(dict(labels)):
                for name, number in numbers.items():
                    node = self._view.node(name)
                    if node is not None and (domain := self._domain(node)) is not None:
                        found[domain] = found.get(domain, 0) + times * number

    def lowest(self, counts: Mapping[str, int]) -> int:
        """The minimum number of pods in a domain. The scan ends at the first domain without any."""
        seen: set[str] = set()
        for domain in self._domains():
            if domain not in counts:
                return 0
            seen.add(domain)
        return min(counts.values(), default=0) if len(seen) >= self._one.min_domains else 0

    def _domains(self) -> Iterator[str]:
        for group in self._view.groups.values():
            for node in group.nodes.values():
                if (domain := self._domain(node)) is not None:
                    yield domain
                if not self._is_by_node:
                    break  # all nodes of a shape have the same domain

    def _domain(self, node: Node) -> str | None:
        if any(node.label(topology) is None for topology in self._every):
            return None
        if self._one.honors_taints and tolerations.untolerated(node.shape.taints, self._ask.tolerations):
            return None
        is_counted = self._one.ignores_node_affinity or filters.is_wanted(self._ask, node)
        return node.label(self._one.topology) if is_counted else None


def _nodes_with(view: ClusterView, terms: Collection[Term]) -> Iterator[str]:
    """The nodes with a pod that matches all of the terms."""
    for namespace in sorted(frozenset.intersection(*(term.namespaces for term in terms))):
        for labels, counts in view.pods_by_labels(namespace):
            as_map = dict(labels)
            if all(term.selector.matches(as_map) for term in terms):
                yield from counts


def _domains(view: ClusterView, names: Collection[str] | Iterator[str], topology: str) -> set[str]:
    nodes = (view.node(name) for name in names)
    return {value for node in nodes if node is not None and (value := node.label(topology)) is not None}


def _label_check(topology: str, reason: Callable[[str | None], FilterReason], view: ClusterView) -> NodeCheck:
    """A check of the value of one label, on shapes unless the label distinguishes nodes."""
    if topology in view.own_labels:
        return NodeCheck(node=lambda node: reason(node.label(topology)))
    return NodeCheck(lambda shape: reason(shape.labels.get(topology)))


def _all_of(checks: list[NodeCheck]) -> NodeCheck:
    shapes = [one.shape for one in checks if one.shape is not None]
    nodes = [one.node for one in checks if one.node is not None]
    return NodeCheck(
        (lambda shape: next((reason for one in shapes if (reason := one(shape))), "")) if shapes else None,
        (lambda node: next((reason for one in nodes if (reason := one(node))), "")) if nodes else None,
    )
