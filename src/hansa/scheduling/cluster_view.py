"""One cluster at one moment, as schedulers see it: nodes by shape, residents, reservations. Immutable.
It follows one change at a time: each answer is a new view that shares what did not change. Watching is left to others.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import node as nodes
from hansa.scheduling import placed_pods as resident_pods
from hansa.scheduling import pod_affinity_terms
from hansa.scheduling.node import Node, Shape
from hansa.scheduling.node_group import NodeGroup
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.placed_pods import Labels, PlacedPod, Tally
from hansa.scheduling.pod_request import PodRequest

_NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room for a pod that was sent on its way; it counts until the pod is seen, or until then."""

    resident: PlacedPod
    until: float


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster as it is known. `closed` says why it takes no new pods at all, if so."""

    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    closed: str = ""
    groups: Mapping[Shape, NodeGroup] = field(default_factory=dict)
    residents: PersistentMap[objects.NamespacedName, PlacedPod] = field(default_factory=PersistentMap)
    reservations: PersistentMap[objects.NamespacedName, Reservation] = field(default_factory=PersistentMap)
    _earliest: float = math.inf  # when the next reservation ends, or sooner
    _shapes: PersistentMap[str, Shape] = field(default_factory=PersistentMap)
    _names: PersistentMap[tuple[str, str], frozenset[str]] = field(default_factory=PersistentMap)  # by own labels
    _loads: PersistentMap[str, requests.Amounts] = field(default_factory=PersistentMap)  # also of nodes not yet seen
    _crowds: Tally[Labels] = field(default_factory=Tally)
    _guards: Tally[pod_affinity_terms.Term] = field(default_factory=Tally)

    def node(self, name: str) -> Node | None:
        """A node by its name."""
        shape = self._shapes.get(name)
        return None if shape is None else self.groups[shape].nodes[name]

    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        return (node for group in self.groups.values() for node in group.nodes.values())

    def named(self, key: str, value: str) -> frozenset[str]:
        """The names of the nodes with one of the labels that are a node's own."""
        return self._names.get((key, value)) or frozenset()

    def crowd(self, namespace: str) -> Iterator[tuple[Labels, Mapping[str, int]]]:
        """The residents of a namespace: their labels, and how many with these lie on each node."""
        return self._crowds.of(namespace)

    def guards(self, namespace: str) -> Iterator[tuple[pod_affinity_terms.Term, Mapping[str, int]]]:
        """What residents demand to be apart from in a namespace, and on which nodes they lie."""
        return self._guards.of(namespace)

    def with_cluster(self, labels: Mapping[str, str], *, closed: str = "") -> "ClusterView":
        """The same with other facts about the cluster as a whole."""
        return dataclasses.replace(self, labels=labels, closed=closed)

    def with_node(self, node: objects.Object) -> "ClusterView":
        """The same after a node came or changed."""
        new, old = nodes.of_object(node, self._loads.get(node.name) or _NOTHING), self.node(node.name)
        if old == new:
            return self
        is_alike = old is not None and (old.shape, old.own) == (new.shape, new.own)
        view = self if is_alike else self.without_node(node.name)
        return dataclasses.replace(
            view,
            groups=view._with_group(new),
            _shapes=view._shapes.having(node.name, new.shape),
            _names=view._names if is_alike else _named(view._names, new, 1),
        )

    def without_node(self, name: str) -> "ClusterView":
        """The same after a node went. Its residents are remembered until they go, too."""
        node = self.node(name)
        if node is None:
            return self
        group = self.groups[node.shape].without(name)
        groups = {**self.groups, node.shape: group}
        if not group.nodes:
            del groups[node.shape]
        names = _named(self._names, node, -1)
        return dataclasses.replace(self, groups=groups, _shapes=self._shapes.without(name), _names=names)

    def with_pod(self, pod: objects.Object) -> "ClusterView":
        """The same after a pod came or changed. Until it is bound, what was reserved for it stays reserved."""
        resident = resident_pods.of_pod(pod)
        if resident is not None:
            return self.with_resident(pod.key, resident)
        is_waiting = pod.key in self.reservations and not requests.is_finished(pod)
        return self if is_waiting else self.without_pod(pod.key)

    def with_resident(self, key: objects.NamespacedName, resident: PlacedPod) -> "ClusterView":
        """The same with a pod on a node."""
        if self.residents.get(key) == resident:
            return self
        view = self.without_pod(key)._counted(resident, 1)
        return dataclasses.replace(view, residents=view.residents.having(key, resident))

    def without_pod(self, key: objects.NamespacedName) -> "ClusterView":
        """The same after a pod went, or a reservation was given up."""
        view = self
        if (reservation := self.reservations.get(key)) is not None:
            view = self._counted(reservation.resident, -1)
            view = dataclasses.replace(view, reservations=view.reservations.without(key))
        if (resident := self.residents.get(key)) is not None:
            view = view._counted(resident, -1)
            view = dataclasses.replace(view, residents=view.residents.without(key))
        return view

    def reserving(self, key: objects.NamespacedName, ask: PodRequest, *, node: str, until: float) -> "ClusterView":
        """The same with room taken for a pod that was sent here. A pod that is on a node needs none."""
        if key in self.residents:
            return self
        reservation = Reservation(resident_pods.of_ask(ask, node), until)
        view = self.without_pod(key)._counted(reservation.resident, 1)
        reservations = view.reservations.having(key, reservation)
        return dataclasses.replace(view, reservations=reservations, _earliest=min(view._earliest, until))

    def at(self, now: float) -> "ClusterView":
        """The same at that time: what was reserved until then or earlier is free."""
        if now < self._earliest:
            return self
        view = self
        for key in [key for key, one in self.reservations.items() if one.until <= now]:
            view = view.without_pod(key)
        earliest = min((one.until for _, one in view.reservations.items()), default=math.inf)
        return dataclasses.replace(view, _earliest=earliest)

    def _counted(self, resident: PlacedPod, times: int) -> "ClusterView":
        load = dict(self._loads.get(resident.node) or _NOTHING)
        requests.add(load, resident.amounts, times)
        guards = self._guards
        for term in resident.apart:
            for namespace in sorted(term.namespaces):
                guards = guards.counted(namespace, term, resident.node, times)
        node = self.node(resident.node)
        free = None if node is None else nodes.remaining(node.allocatable, load)
        return dataclasses.replace(
            self,
            groups=self.groups if node is None or free is None else self._with_group(nodes.with_free(node, free)),
            _loads=self._loads.having(resident.node, load) if load else self._loads.without(resident.node),
            _crowds=self._crowds.counted(resident.namespace, resident.labels, resident.node, times),
            _guards=guards,
        )

    def _with_group(self, node: Node) -> Mapping[Shape, NodeGroup]:
        group = self.groups.get(node.shape) or NodeGroup(node.shape)
        return {**self.groups, node.shape: group.having(node)}


def _named(
    names: PersistentMap[tuple[str, str], frozenset[str]], node: Node, times: int
) -> PersistentMap[tuple[str, str], frozenset[str]]:
    for label in node.own.items():
        had = names.get(label) or frozenset()
        has = had | {node.name} if times > 0 else had - {node.name}
        names = names.having(label, has) if has else names.without(label)
    return names
