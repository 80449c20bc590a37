"""All clusters of the pool. The registry determines which ones are watched; the others are `absent_clusters`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hansa.engine import task_set
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.runtime import clock, listeners, tasks
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pooling.absent_clusters import AbsentClusters
from hansa.scheduling.pooling.pool_cluster import LossTimeout, MemberSettings, PoolCluster
from hansa.scheduling.slicing.pool import Headroom, Member, State

# Of a cluster whose Cluster was never read. With an agent, its pods end later.
_UNKNOWN: Final = MemberSettings({}, Headroom(), has_agent=True)


class PoolClusters:
    """A `PoolCluster` for each cluster of a registry, opened and closed as clusters join and leave."""

    def __init__(
        self, registry: ClusterRegistry, *, clock: clock.Clock, loss_timeout: LossTimeout, supervisor: tasks.Supervisor
    ) -> None:
        self._registry, self._clock, self._loss_timeout, self._supervisor = registry, clock, loss_timeout, supervisor
        self._clusters: dict[str, PoolCluster] = {}
        self._settings: dict[str, MemberSettings] = {}
        self.absent = AbsentClusters(
            clock=clock,
            loss_timeout=lambda name: loss_timeout.of(self._settings.get(name, _UNKNOWN)),
            notify=self._notify,
        )
        self._listeners: listeners.Listeners[Callable[[str], None]] = listeners.Listeners()

    async def run(self) -> None:
        """Watch the clusters of the registry."""
        self.absent.start()
        try:
            await task_set.maintain(
                "pool-cluster",
                lambda: self._registry.clusters,
                self._watch,
                self._registry,
                supervisor=self._supervisor,
            )
        finally:
            self.absent.close()

    @property
    def is_open(self) -> bool:
        """Whether all clusters of the registry are watched."""
        return self._registry.clusters.keys() <= self._clusters.keys()

    @property
    def is_known(self) -> bool:
        """Whether all of them have synced and are reachable."""
        return self.is_open and all(
            pool_cluster.is_known and not pool_cluster.is_unreachable for pool_cluster in self._clusters.values()
        )

    def get(self, name: str) -> PoolCluster | None:
        """The cluster of this name, if it is watched."""
        return self._clusters.get(name)

    def state(self, name: str) -> State:
        """The state of a cluster, joined or not."""
        pool_cluster = self._clusters.get(name)
        return (self.absent.state(name) if pool_cluster is None else pool_cluster.state)[0]

    def members(self, named: Iterable[str] = ()) -> Mapping[str, Member]:
        """The clusters for planning, with those among `named` that are not joined and not lost."""
        absent = self.absent.members(name for name in named if name not in self._clusters)
        return absent | {name: pool_cluster.member() for name, pool_cluster in self._clusters.items()}

    def views(self) -> Mapping[str, ClusterView]:
        """The clusters for the choice of a pod's cluster, without those that have not synced."""
        return {name: pool_cluster.view() for name, pool_cluster in self._clusters.items() if pool_cluster.is_known}

    def update_settings(self, name: str, settings: MemberSettings) -> None:
        """Set the settings of a cluster, which may join later."""
        self._settings[name] = settings
        if (pool_cluster := self._clusters.get(name)) is not None:
            pool_cluster.update_settings(settings)

    def report_reachable(self, name: str) -> None:
        """Another process reports a cluster as reachable."""
        if (pool_cluster := self._clusters.get(name)) is not None:
            pool_cluster.report_reachable()
        else:
            self.absent.see(name)

    def listen(self, notify: Callable[[str], None]) -> Callable[[], None]:
        """Call `notify` with the name of a changed cluster. Returns a function that ends this."""
        return self._listeners.add(notify)

    async def _watch(self, cluster: Cluster) -> None:
        name, pool_cluster = (
            cluster.name,
            PoolCluster(cluster, clock=self._clock, loss_timeout=self._loss_timeout, notify=self._notify),
        )
        try:
            await pool_cluster.open()
            self._clusters[name] = pool_cluster
            self.absent.join(name)
            pool_cluster.update_settings(self._settings.get(name, pool_cluster.settings))
            self._notify(name)
            await asyncio.get_running_loop().create_future()
        finally:
            if self._clusters.pop(name, None) is not None:
                self.absent.see(name)
            await pool_cluster.close()
            self._notify(name)

    def _notify(self, name: str) -> None:
        for notify in self._listeners:
            notify(name)
