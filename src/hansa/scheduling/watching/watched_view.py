"""The view of one cluster, kept up to date by its caches of nodes and pods, and the reservations in it.

Used by schedulers. Whether the cluster may be used is left to them.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hansa.control import table
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import clock
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.resettling import resettled


@dataclass(frozen=True, slots=True)
class Changed:
    """What is called after the view has changed: for a node, for a pod, and when a cache becomes complete or stale."""

    node: Callable[[NamespacedName, Object | None], None]
    pod: Callable[[NamespacedName, Object | None, bool], None]  # whether the pod has left its node
    freshness: Callable[[], None]


class WatchedView:
    """Watches the nodes and pods of a cluster from `open` to `close`."""

    def __init__(self, cluster: Cluster, *, clock: clock.Clock, changed: Changed) -> None:
        self._cluster, self._clock, self._changed = cluster, clock, changed
        self._view = ClusterView(cluster.name)
        self._stack = contextlib.AsyncExitStack()

    async def open(self) -> None:
        """Start watching."""
        informers = self._cluster.informers
        self._nodes = await self._stack.enter_async_context(informers.share(Scope(resources.NODES)))
        self._pods = await self._stack.enter_async_context(informers.share(Scope(resources.PODS)))
        for end in (
            self._nodes.listen(self._node_changed, table.own_key),
            self._pods.listen(self._pod_changed, table.own_key),
            self._nodes.freshness.listen(lambda _: self._changed.freshness()),
            self._pods.freshness.listen(lambda _: self._changed.freshness()),
        ):
            self._stack.callback(end)

    async def close(self) -> None:
        """Stop watching."""
        await self._stack.aclose()

    @property
    def has_synced(self) -> bool:
        """Whether the nodes and pods have been listed."""
        return self._nodes.freshness.has_synced and self._pods.freshness.has_synced

    def view(self, labels: Mapping[str, str] | None = None, *, closed: str = "") -> ClusterView:
        """The view now, of a cluster with these labels that is closed for this reason."""
        self._view = self._view.at(self._clock.now())
        if (self._view.closed, self._view.labels) != (closed, labels or {}):
            self._view = self._view.with_cluster(labels or {}, closed=closed)
        return self._view

    def reserve(self, key: NamespacedName, request: PodRequest, *, node: str, seconds: float) -> None:
        """Reserve resources for a pod until it is bound."""
        self._view = self._view.reserving(key, request, node=node, until=self._clock.now() + seconds)

    def release(self, key: NamespacedName) -> bool:
        """Release a reservation, and return whether there was one. A bound pod is not affected."""
        if key not in self._view.reservations:
            return False
        self._view = self._view.without_pod(key)
        return True

    def _node_changed(self, key: NamespacedName) -> None:
        node = self._nodes.get(key)
        self._view = self._view.without_node(key.name) if node is None else self._view.with_node(node)
        self._view = resettled(self._view, key.name)
        self._changed.node(key, node)

    def _pod_changed(self, key: NamespacedName) -> None:
        pod, before = self._pods.get(key), self._view
        self._view = before.without_pod(key) if pod is None else before.with_pod(pod)
        has_left = len(self._view.pods) < len(before.pods)
        if (placed := self._view.pods.get(key)) is not None:
            self._view = resettled(self._view, placed.node)
        self._changed.pod(key, pod, has_left)
