"""The super clusters that tenants' objects go to: one, or those of a pool, which come and go.

One that does not answer for long is taken out: its links end, so that what was there can begin elsewhere. When it
answers again it is linked again, and what is stale there goes like everything that nobody wants.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry, Route
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime import clock
from hansa.tenancy.syncing import service_ranges
from hansa.tenancy.syncing.members import NotSynced, Tenancy

log = logging.getLogger(__name__)
NEVER = 0.0  # seconds: a super cluster that is alone is never taken out
SOON = 5.0  # seconds after which a super cluster that failed for one tenant is tried again
MakeRoute = Callable[[Tenancy, str, tuple[str, ...]], Route]


@dataclass(slots=True)
class _Super:
    cluster: Cluster
    ranges: service_ranges.ServiceRanges
    is_lost: bool = False
    timer: asyncio.TimerHandle | None = None


class SuperClusters:
    """Those that take part in a registry. `make` makes the route of a tenant to one, with its ranges that are kept.

    `changed` is called when the routes of all tenants have to be looked at again. Super clusters are lost after so
    many seconds; where an agent ends their pods first, it has some more for that.
    """

    def __init__(
        self, registry: Registry, make: MakeRoute, *, lost_after: float, fence_grace: float = 0.0, clock: clock.Clock
    ) -> None:
        self._registry, self._make, self._clock = registry, make, clock
        self._lost_after, self._fence_grace = lost_after, fence_grace
        self._supers: dict[str, _Super] = {}
        self._agents: set[str] = set()
        self.changed: Callable[[], None] = lambda: None

    def add(self, cluster: Cluster) -> Cluster:
        """One more: it counts as long as it is in the registry."""
        self._supers[cluster.name] = _Super(cluster, service_ranges.ServiceRanges(cluster.client, clock=self._clock))
        cluster.health.listen(functools.partial(self._look, self._supers[cluster.name]))
        self._look(self._supers[cluster.name])
        return cluster

    def learn(self, name: str, *, has_agent: bool) -> None:
        """Whether an agent ends the pods of a super cluster that is cut off."""
        (self._agents.add if has_agent else self._agents.discard)(name)
        if (one := self._supers.get(name)) is not None:
            self._set_timer(one)

    def all(self) -> dict[str, Cluster]:
        """Those that take part, lost or not."""
        there = self._registry.clusters
        return {name: one.cluster for name, one in self._supers.items() if there.get(name) is one.cluster}

    async def routes(self, tenancy: Tenancy, tenant: Client) -> list[Route]:
        """The routes of a tenant, one to each that is not lost."""
        serving = [self._supers[name] for name in self.all() if not self._supers[name].is_lost]
        ranges = await service_ranges.of(tenant)
        found = await asyncio.gather(*(self._route(one, tenancy, ranges) for one in serving))
        routes = [route for route in found if route is not None]
        if not routes:
            raise NotSynced("NoSuperCluster", "there is no super cluster that can be reached")
        return routes

    async def _route(self, one: _Super, tenancy: Tenancy, ranges: Iterable[Object]) -> Route | None:
        """The route to one; as it was if it cannot be asked now."""
        if not one.cluster.health.trouble:
            try:
                return self._make(tenancy, one.cluster.name, await one.ranges.keep(tenancy.owner, ranges))
            except errors.Unreachable as error:
                log.warning("a super cluster failed", extra={"cluster": one.cluster.name, "error": str(error)})
                asyncio.get_running_loop().call_later(SOON, self.changed)
        standing = self._registry.routes(tenancy.owner.key)
        return next((route for route in standing if route.lower == one.cluster.name), None)

    def _look(self, one: _Super) -> None:
        """Whether it answers may be another now, or why it does not."""
        self._set_timer(one)
        if not one.cluster.health.trouble:
            if one.is_lost:
                log.warning("a lost super cluster is back", extra={"cluster": one.cluster.name})
            one.is_lost = False
            self.changed()

    def _set_timer(self, one: _Super) -> None:
        """Take it out when it is away for too long."""
        if one.timer is not None:
            one.timer.cancel()
            one.timer = None
        if not one.cluster.health.trouble or one.is_lost or self._lost_after <= NEVER:
            return
        most = self._lost_after + (self._fence_grace if one.cluster.name in self._agents else 0.0)
        rest = max(0.0, one.cluster.health.answered + most - self._clock.now())
        one.timer = asyncio.get_running_loop().call_later(rest, self._lose, one)

    def _lose(self, one: _Super) -> None:
        one.timer, one.is_lost = None, True
        if self.all().get(one.cluster.name) is one.cluster:
            log.warning("a super cluster is lost", extra={"cluster": one.cluster.name, "after": self._lost_after})
        self.changed()
