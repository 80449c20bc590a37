"""All clusters of the pool as they are watched now. Which ones take part is the registry's matter."""

import asyncio
from collections.abc import Callable, Mapping

from hansa.engine import task_set
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry
from hansa.runtime import clock, listeners, tasks
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pooling.pool_cluster import ClusterIdentity, Patience, PoolCluster
from hansa.scheduling.slicing.pool import Member


class PoolClusters:
    """The lands of a registry's clusters, opened and closed as they come and go."""

    def __init__(
        self, registry: Registry, *, clock: clock.Clock, patience: Patience, supervisor: tasks.Supervisor
    ) -> None:
        self._registry, self._clock, self._patience, self._supervisor = registry, clock, patience, supervisor
        self._lands: dict[str, PoolCluster] = {}
        self._facts: dict[str, ClusterIdentity] = {}
        self._listeners: listeners.Listeners[Callable[[str], None]] = listeners.Listeners()

    async def run(self) -> None:
        """Follow the registry."""
        await task_set.maintain(
            "pool-cluster", lambda: self._registry.clusters, self._watch, self._registry, supervisor=self._supervisor
        )

    @property
    def is_open(self) -> bool:
        """Whether all clusters of the registry are watched."""
        return self._registry.clusters.keys() <= self._lands.keys()

    @property
    def is_known(self) -> bool:
        """Whether all of them were listed and can be reached."""
        return self.is_open and all(land.is_known and not land.is_away for land in self._lands.values())

    def land(self, name: str) -> PoolCluster | None:
        """One of them."""
        return self._lands.get(name)

    def members(self) -> Mapping[str, Member]:
        """What planning sees."""
        return {name: land.member() for name, land in self._lands.items()}

    def views(self) -> Mapping[str, ClusterView]:
        """What a pod's choice sees; those that are not known yet are left out."""
        return {name: land.view() for name, land in self._lands.items() if land.is_known}

    def learn(self, name: str, facts: ClusterIdentity) -> None:
        """What people say about a cluster, now or when it comes."""
        self._facts[name] = facts
        if (land := self._lands.get(name)) is not None:
            land.learn(facts)

    def vouch(self, name: str) -> None:
        """Somebody else reaches a cluster."""
        if (land := self._lands.get(name)) is not None:
            land.vouch()

    def listen(self, notify: Callable[[str], None]) -> Callable[[], None]:
        """Tell `notify` which cluster may have more or less room than before. The answer ends it."""
        return self._listeners.add(notify)

    async def _watch(self, cluster: Cluster) -> None:
        name, land = cluster.name, PoolCluster(cluster, clock=self._clock, patience=self._patience, notify=self._tell)
        try:
            await land.open()
            self._lands[name] = land
            land.learn(self._facts.get(name, land.facts))
            self._tell(name)
            await asyncio.get_running_loop().create_future()
        finally:
            self._lands.pop(name, None)
            await land.close()
            self._tell(name)

    def _tell(self, name: str) -> None:
        for notify in self._listeners:
            notify(name)
