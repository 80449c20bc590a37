"""Filters that look at who lies where: pod affinity, anti-affinity (of both sides) and topology spread.
They judge one cluster as its own scheduler would, from the residents and reservations that the view knows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping

from hansa.scheduling import filters
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import OWN_LABELS, Node
from hansa.scheduling.plugins import Sieve, Why
from hansa.scheduling.pod_affinity_terms import Spread, Term
from hansa.scheduling.pod_request import PodRequest


def near(ask: PodRequest, view: ClusterView) -> Sieve | None:
    """A node must be in the domain of pods that the ask wants to be near."""
    terms = ask.relations.near
    if not terms:
        return None
    homes = set(_nodes_with(view, terms))
    if not homes and all(term.matches(ask.namespace, ask.labels) for term in terms):
        # The first of a group that wants to be together may go anywhere that has the domain.
        return _all_of([_sieve(term.topology, lambda value: "" if value is not None else _NOT_NEAR) for term in terms])
    return _all_of([_inside(term.topology, _domains(view, homes, term.topology)) for term in terms])


def apart(ask: PodRequest, view: ClusterView) -> Sieve | None:
    """A node must not be in the domain of pods that the ask wants to be apart from, or that want it of the ask."""
    taken: dict[str, set[str]] = {}
    for term in ask.relations.apart:
        taken.setdefault(term.topology, set()).update(_domains(view, _nodes_with(view, (term,)), term.topology))
    for term, counts in view.guards(ask.namespace):
        if term.selector.matches(ask.labels):
            taken.setdefault(term.topology, set()).update(_domains(view, counts, term.topology))
    sieves = [_outside(topology, values) for topology, values in taken.items() if values]
    return _all_of(sieves) if sieves else None


def spread(ask: PodRequest, view: ClusterView) -> Sieve | None:
    """A node must be in a domain that may get one more."""
    spreads = ask.relations.spreads
    return _all_of([_evened(one, ask, view) for one in spreads]) if spreads else None


_NOT_NEAR = "away from the pods that it must be near"
_NOT_APART = "beside pods that it must be apart from"


def _inside(topology: str, values: Collection[str]) -> Sieve:
    return _sieve(topology, lambda value: "" if value in values else _NOT_NEAR)


def _outside(topology: str, values: Collection[str]) -> Sieve:
    return _sieve(topology, lambda value: _NOT_APART if value in values else "")


def _evened(one: Spread, ask: PodRequest, view: ClusterView) -> Sieve:
    census = _Census(one, ask, view)
    counts = census.counts()
    lowest = census.lowest(counts)
    own = one.selector.matches(ask.labels)

    def why(value: str | None) -> Why:
        if value is None:
            return f"without the label {one.topology}"
        return f"in a full {one.topology}" if counts.get(value, 0) + own - lowest > one.most else ""

    return _sieve(one.topology, why)


class _Census:
    """Those that are to be spread, by domain. Nodes without all the labels to spread over don't count."""

    def __init__(self, one: Spread, ask: PodRequest, view: ClusterView) -> None:
        self._one, self._ask, self._view = one, ask, view
        self._every = {spread.topology for spread in ask.relations.spreads}
        self._is_by_node = not self._every.isdisjoint(OWN_LABELS) or filters.names_nodes(ask.affinity)

    def counts(self) -> Mapping[str, int]:
        """How many lie in each domain that is not empty."""
        found: dict[str, int] = {}
        for labels, numbers in self._view.crowd(self._ask.namespace):
            if self._one.selector.matches(dict(labels)):
                for name, number in numbers.items():
                    node = self._view.node(name)
                    if node is not None and (domain := self._domain(node)) is not None:
                        found[domain] = found.get(domain, 0) + number
        return found

    def lowest(self, counts: Mapping[str, int]) -> int:
        """How many lie in the emptiest domain. The walk ends at the first domain with none."""
        seen: set[str] = set()
        for domain in self._domains():
            if domain not in counts:
                return 0
            seen.add(domain)
        return min(counts.values(), default=0) if len(seen) >= self._one.least_domains else 0

    def _domains(self) -> Iterator[str]:
        for group in self._view.groups.values():
            for node in group.nodes.values():
                if (domain := self._domain(node)) is not None:
                    yield domain
                if not self._is_by_node:
                    break  # one stands for all of its shape

    def _domain(self, node: Node) -> str | None:
        if any(node.label(topology) is None for topology in self._every):
            return None
        is_counted = self._one.counts_unwanted or filters.is_wanted(self._ask, node)
        return node.label(self._one.topology) if is_counted else None


def _nodes_with(view: ClusterView, terms: Collection[Term]) -> Iterator[str]:
    """The nodes with a pod that all of the terms mean."""
    for namespace in sorted(frozenset.intersection(*(term.namespaces for term in terms))):
        for labels, counts in view.crowd(namespace):
            as_map = dict(labels)
            if all(term.selector.matches(as_map) for term in terms):
                yield from counts


def _domains(view: ClusterView, names: Collection[str] | Iterator[str], topology: str) -> set[str]:
    homes = (view.node(name) for name in names)
    return {value for home in homes if home is not None and (value := home.label(topology)) is not None}


def _sieve(topology: str, why: Callable[[str | None], Why]) -> Sieve:
    """A sieve by the value of one label, on shapes where that is enough."""
    if topology in OWN_LABELS:
        return Sieve(node=lambda node: why(node.label(topology)))
    return Sieve(lambda shape: why(shape.labels.get(topology)))


def _all_of(sieves: list[Sieve]) -> Sieve:
    shapes = [one.shape for one in sieves if one.shape is not None]
    nodes = [one.node for one in sieves if one.node is not None]
    return Sieve(
        (lambda shape: next((why for one in shapes if (why := one(shape))), "")) if shapes else None,
        (lambda node: next((why for one in nodes if (why := one(node))), "")) if nodes else None,
    )
