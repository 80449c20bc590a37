"""One cluster as commands that end read it: its nodes, its pods, and their view. Immutable.

Forecasts change a copy of it. Schedulers, which watch, use `watching.watched_view`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hansa.kube.objects import NamespacedName, Object
from hansa.scheduling.cluster_view import ClusterView


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment. `unknown` is why it could not be read; then nothing may be concluded from it."""

    name: str
    nodes: Mapping[str, Object] = field(default_factory=dict)
    pods: Mapping[NamespacedName, Object] = field(default_factory=dict)
    view: ClusterView = field(default_factory=lambda: ClusterView(""))
    unknown: str = ""

    def with_node(self, node: Object) -> "Snapshot":
        """A snapshot with a node added or replaced."""
        return replace(self, nodes={**self.nodes, node.name: node}, view=self.view.with_node(node))

    def without_pod(self, key: NamespacedName) -> "Snapshot":
        """A snapshot without a pod."""
        pods = {name: pod for name, pod in self.pods.items() if name != key}
        return replace(self, pods=pods, view=self.view.without_pod(key))

    def pods_on(self, node: str) -> list[Object]:
        """The pods that are bound to a node and have not finished."""
        placed = self.view.pods
        return [pod for key, pod in self.pods.items() if (one := placed.get(key)) is not None and one.node == node]


def of(name: str, nodes: Iterable[Object], pods: Iterable[Object]) -> Snapshot:
    """The snapshot of a cluster with these nodes and pods."""
    view, by_name = ClusterView(name), {node.name: node for node in nodes}
    for node in by_name.values():
        view = view.with_node(node)
    by_key = {pod.key: pod for pod in pods}
    for pod in by_key.values():
        view = view.with_pod(pod)
    return Snapshot(name, by_name, by_key, view)


def unread(name: str, reason: str) -> Snapshot:
    """A cluster that could not be read."""
    return Snapshot(name, view=ClusterView(name, closed=reason), unknown=reason)
