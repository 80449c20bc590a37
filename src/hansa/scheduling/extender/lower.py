"""A lower cluster as the extender sees it: its view, closed while it is unreachable or not listed."""

from collections.abc import Callable

from hansa.engine.cluster import Cluster
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import clock
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.watching.watched_view import Changed, WatchedView

RESERVED_SECONDS = 60.0  # for a bound pod until its copy is bound below; one that is refused there holds no room longer


class Lower:
    """Watches one lower cluster from `open` to `close`; `freed` is called when pods may fit that did not."""

    def __init__(self, cluster: Cluster, *, clock: clock.Clock, freed: Callable[[str], None]) -> None:
        self.name = cluster.name
        self._cluster, self._freed = cluster, freed
        changed = Changed(self._node_changed, self._pod_changed, self._state_changed)
        self._watched = WatchedView(cluster, clock=clock, changed=changed)

    async def open(self) -> None:
        """Start watching."""
        await self._watched.open()
        self._end = self._cluster.health.listen(self._state_changed)

    async def close(self) -> None:
        """Stop watching."""
        self._end()
        await self._watched.close()

    @property
    def has_synced(self) -> bool:
        """Whether its nodes and pods have been listed."""
        return self._watched.has_synced

    @property
    def view(self) -> ClusterView:
        """The cluster now."""
        return self._watched.view(closed=self._closed())

    def knows(self, key: NamespacedName) -> bool:
        """Whether a pod is on a node, or has a reservation."""
        view = self.view
        return key in view.pods or key in view.reservations

    def reserve(self, key: NamespacedName, request: PodRequest, node: str) -> None:
        """Reserve resources for a pod until its copy is bound."""
        self._watched.reserve(key, request, node=node, seconds=RESERVED_SECONDS)

    def release(self, key: NamespacedName) -> None:
        """Release the reservation of a pod."""
        if self._watched.release(key):
            self._freed(self.name)

    def _closed(self) -> str:
        if not self._cluster.health.is_reachable:
            return "unreachable"
        return "" if self.has_synced else "not synced yet"

    def _node_changed(self, _key: NamespacedName, _node: Object | None) -> None:
        self._freed(self.name)

    def _pod_changed(self, _key: NamespacedName, _pod: Object | None, has_left: bool) -> None:
        if has_left:
            self._freed(self.name)

    def _state_changed(self) -> None:
        self._freed(self.name)
