"""One cluster as commands that end read it: its nodes, its pods, and their view. Immutable.

Forecasts change a copy of it. Schedulers, which watch, use `watching.watched_view`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hansa.kube.objects import NamespacedName, Object
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.persistent_map import PersistentMap


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment. `unknown` is why it could not be read; then nothing may be concluded from it."""

    name: str
    nodes: Mapping[str, Object] = field(default_factory=dict)
    pods: PersistentMap[NamespacedName, Object] = field(default_factory=PersistentMap)  # forecasts remove thousands
    view: ClusterView = field(default_factory=lambda: ClusterView(""))
    unknown: str = ""

    def with_node(self, node: Object) -> "Snapshot":
        """A snapshot with a node added or replaced."""
        return replace(self, nodes={**self.nodes, node.name: node}, view=self.view.with_node(node))

    def without_pod(self, key: NamespacedName) -> "Snapshot":
        """A snapshot without a pod."""
        return replace(self, pods=self.pods.without(key), view=self.view.without_pod(key))

    def pods_on(self, node: str) -> list[Object]:
        """The pods that are bound to a node and have not finished, by name."""
        placed = self.view.pods
        found = [pod for key, pod in self.pods.items() if (one := placed.get(key)) is not None and one.node == node]
        return sorted(found, key=lambda pod: pod.key)


def of(name: str, nodes: Iterable[Object], pods: Iterable[Object]) -> Snapshot:
    """The snapshot of a cluster with these nodes and pods."""
    view, by_name = ClusterView(name), {node.name: node for node in nodes}
    for node in by_name.values():
        view = view.with_node(node)
    by_key = {pod.key: pod for pod in pods}
    for pod in by_key.values():
        view = view.with_pod(pod)
    return Snapshot(name, by_name, PersistentMap.of(by_key), view)


def unread(name: str, reason: str) -> Snapshot:
    """A cluster that could not be read."""
    return Snapshot(name, view=ClusterView(name, closed=reason), unknown=reason)
