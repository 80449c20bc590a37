"""A snapshot of one cluster for schedulers: nodes grouped by shape, placed pods, and reservations. Immutable.

Each change returns a new view that shares its unchanged parts. The caller watches.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import node as nodes
from hansa.scheduling import own_labels, placed_pods, pod_affinity_terms
from hansa.scheduling.host_ports import HostPort
from hansa.scheduling.node import Node, Shape
from hansa.scheduling.node_group import NodeGroup
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.placed_pods import Labels, PlacedPod, PodCounts
from hansa.scheduling.pod_request import PodRequest

_NOTHING: Mapping[str, int] = {}
MOST_GROUPS = 32  # an evaluation filters and scores a node of each, at 5 to 10 µs


@dataclass(frozen=True, slots=True)
class Reservation:
    """Resources for a pod that was placed here; they count until the pod is bound, or until this time."""

    placed: PlacedPod
    until: float
    request: PodRequest


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The state of a cluster. `closed` is why it accepts no new pods; empty if it does."""

    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    closed: str = ""
    groups: Mapping[Shape, NodeGroup] = field(default_factory=dict)
    own_labels: frozenset[str] = nodes.OWN_LABELS  # the labels of nodes that are not part of shapes
    pods: PersistentMap[objects.NamespacedName, PlacedPod] = field(default_factory=PersistentMap)
    reservations: PersistentMap[objects.NamespacedName, Reservation] = field(default_factory=PersistentMap)
    most_groups: int = MOST_GROUPS  # with more, labels leave the shapes
    _earliest: float = math.inf  # the earliest end of a reservation, or earlier
    _shapes: PersistentMap[str, Shape] = field(default_factory=PersistentMap)
    # The names of nodes by their labels in `own_labels`.
    _names: PersistentMap[tuple[str, str], frozenset[str]] = field(default_factory=PersistentMap)
    # The requests of pods by node, also of nodes without an event yet.
    _loads: PersistentMap[str, requests.Amounts] = field(default_factory=PersistentMap)
    _pods_by_labels: PodCounts[Labels] = field(default_factory=PodCounts)
    _leaving: PodCounts[Labels] = field(default_factory=PodCounts)  # of these, the pods that are being deleted
    _anti_affinity: PodCounts[pod_affinity_terms.Term] = field(default_factory=PodCounts)
    _host_ports: PodCounts[HostPort] = field(default_factory=PodCounts)  # by number instead of namespace

    @classmethod
    def of_nodes(cls, cluster: str, found: Iterable[Node]) -> "ClusterView":
        """A view of these nodes, built at once: one by one, each would copy what it shares with the others.

        Of their labels, exactly the unique ones are outside of their shapes.
        """
        return cls(cluster)._of_nodes(found)._regrouped()

    def node(self, name: str) -> Node | None:
        """A node by its name."""
        shape = self._shapes.get(name)
        return None if shape is None else self.groups[shape].nodes[name]

    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        return (node for group in self.groups.values() for node in group.nodes.values())

    def named(self, key: str, value: str) -> frozenset[str]:
        """The names of the nodes with this label, which is one of `own_labels`."""
        return self._names.get((key, value)) or frozenset()

    def pods_by_labels(self, namespace: str) -> Iterator[tuple[Labels, Mapping[str, int]]]:
        """The pods of a namespace: each set of labels, with the number of pods per node."""
        return self._pods_by_labels.of(namespace)

    def leaving_by_labels(self, namespace: str) -> Iterator[tuple[Labels, Mapping[str, int]]]:
        """Those of `pods_by_labels` that are being deleted."""
        return self._leaving.of(namespace)

    def host_ports(self, number: int) -> Iterator[tuple[HostPort, Mapping[str, int]]]:
        """The host ports with this number that are taken, with the number of pods per node."""
        return self._host_ports.of(str(number))

    def anti_affinity_terms(self, namespace: str) -> Iterator[tuple[pod_affinity_terms.Term, Mapping[str, int]]]:
        """Anti-affinity terms of placed pods that apply to a namespace, with the number of pods per node."""
        return self._anti_affinity.of(namespace)

    def with_cluster(self, labels: Mapping[str, str], *, closed: str = "") -> "ClusterView":
        """A view with other labels of the cluster, open or closed."""
        return dataclasses.replace(self, labels=labels, closed=closed)

    def with_node(self, node: objects.Object) -> "ClusterView":
        """A view with a node added or updated."""
        load, old = self._loads.get(node.name) or _NOTHING, self.node(node.name)
        new = nodes.of_object(node, load, self.own_labels)
        if old == new:
            return self
        is_same_shape = old is not None and (old.shape, old.own) == (new.shape, new.own)
        view = self if is_same_shape else self.without_node(node.name)
        return view._having(new, _names=view._names if is_same_shape else _named(view._names, new, 1))._regrouped()

    def without_node(self, name: str) -> "ClusterView":
        """A view without a node. Its pods are kept until they are deleted."""
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
        """A view with a pod added or updated. Its reservation is kept until it is bound."""
        placed = placed_pods.of_pod(pod)
        if placed is not None:
            return self.with_placed_pod(pod.key, placed)
        is_waiting = pod.key in self.reservations and not requests.is_finished(pod)
        return self if is_waiting else self.without_pod(pod.key)

    def with_placed_pod(self, key: objects.NamespacedName, placed: PlacedPod) -> "ClusterView":
        """A view with a pod on a node."""
        if self.pods.get(key) == placed:
            return self
        view = self.without_pod(key)._counted(placed, 1)
        return dataclasses.replace(view, pods=view.pods.having(key, placed))

    def without_pod(self, key: objects.NamespacedName) -> "ClusterView":
        """A view without a pod and its reservation."""
        view = self
        if (reservation := self.reservations.get(key)) is not None:
            view = self._counted(reservation.placed, -1)
            view = dataclasses.replace(view, reservations=view.reservations.without(key))
        if (placed := self.pods.get(key)) is not None:
            view = view._counted(placed, -1)
            view = dataclasses.replace(view, pods=view.pods.without(key))
        return view

    def reserving(self, key: objects.NamespacedName, request: PodRequest, *, node: str, until: float) -> "ClusterView":
        """A view with a reservation for a pod. A bound pod needs none."""
        if key in self.pods:
            return self
        reservation = Reservation(placed_pods.of_request(request, node), until, request)
        view = self.without_pod(key)._counted(reservation.placed, 1)
        reservations = view.reservations.having(key, reservation)
        return dataclasses.replace(view, reservations=reservations, _earliest=min(view._earliest, until))

    def at(self, now: float) -> "ClusterView":
        """A view without the reservations that have expired at this time."""
        if now < self._earliest:
            return self
        view = self
        for key in [key for key, one in self.reservations.items() if one.until <= now]:
            view = view.without_pod(key)
        earliest = min((one.until for _, one in view.reservations.items()), default=math.inf)
        return dataclasses.replace(view, _earliest=earliest)

    def _counted(self, placed: PlacedPod, times: int) -> "ClusterView":
        load = dict(self._loads.get(placed.node) or _NOTHING)
        requests.add(load, placed.amounts, times)
        node = self.node(placed.node)
        free = None if node is None else nodes.remaining(node.allocatable, load)
        return dataclasses.replace(
            self,
            groups=self.groups if node is None or free is None else self._with_group(nodes.with_free(node, free)),
            _loads=self._loads.having(placed.node, load) if load else self._loads.without(placed.node),
            _pods_by_labels=self._pods_by_labels.counted(placed.namespace, placed.labels, placed.node, times),
            **self._exclusions(placed, times),
        )

    def _exclusions(self, placed: PlacedPod, times: int) -> dict[str, Any]:
        """What most pods don't have, with a pod added or removed: anti-affinity terms, host ports, an end."""
        terms, ports, leaving = self._anti_affinity, self._host_ports, self._leaving
        for term in placed.anti_affinity:
            for namespace in sorted(term.namespaces):
                terms = terms.counted(namespace, term, placed.node, times)
        for port in placed.host_ports:
            ports = ports.counted(str(port.number), port, placed.node, times)
        if placed.is_leaving:
            leaving = leaving.counted(placed.namespace, placed.labels, placed.node, times)
        return {"_anti_affinity": terms, "_host_ports": ports, "_leaving": leaving}

    def _having(self, node: Node, **changes: Any) -> "ClusterView":
        shapes = self._shapes.having(node.name, node.shape)
        return dataclasses.replace(self, groups=self._with_group(node), _shapes=shapes, **changes)

    def _regrouped(self) -> "ClusterView":
        """A view with fewer groups, if there are too many: the labels with most values leave the shapes."""
        if len(self.groups) <= self.most_groups:
            return self
        own = own_labels.found(self.groups, self.own_labels, most_groups=self.most_groups // 2)
        view = dataclasses.replace(self, own_labels=own)._of_nodes(nodes.with_own(node, own) for node in self.nodes())
        # The limit grows, so that nodes that have ever new labels are not regrouped again and again.
        return dataclasses.replace(view, most_groups=2 * max(self.most_groups, len(view.groups)))

    def _of_nodes(self, found: Iterable[Node]) -> "ClusterView":
        """The view with exactly these nodes."""
        groups: dict[Shape, dict[str, Node]] = {}
        names: dict[tuple[str, str], set[str]] = {}
        for node in found:
            groups.setdefault(node.shape, {})[node.name] = node
            for label in node.own.items():
                names.setdefault(label, set()).add(node.name)
        return dataclasses.replace(
            self,
            groups={shape: NodeGroup.of(shape, members) for shape, members in groups.items()},
            _shapes=PersistentMap.of({name: shape for shape, members in groups.items() for name in members}),
            _names=PersistentMap.of({label: frozenset(members) for label, members in names.items()}),
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
