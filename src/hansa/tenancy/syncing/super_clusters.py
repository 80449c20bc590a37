"""The super clusters of vc-syncer, one or those of a pool, and the routes of tenants to them.

An unreachable super cluster of a pool is lost after a while: its routes are removed, so that pods can start elsewhere.
When it is reachable again, its routes are added again and stale objects there are deleted by the sync.
"""

import asyncio
import contextlib
import functools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube import errors
from hansa.kube.objects import Object
from hansa.runtime import clock
from hansa.tenancy.api import Network
from hansa.tenancy.syncing import api_addresses, data_loss, members, service_ranges, serving
from hansa.tenancy.syncing.api_addresses import ApiServer
from hansa.tenancy.syncing.api_relay import ApiRelay
from hansa.tenancy.syncing.members import NotSynced, Tenancy

log = logging.getLogger(__name__)
NEVER = 0.0  # as `lost_after`: the only super cluster is never lost
RETRY_SECONDS = 5.0  # until the routes are made again after a super cluster failed for one tenant
NONE_REACHABLE = "no super cluster is reachable"


@dataclass(frozen=True, slots=True)
class Served:
    """What a tenant has in a super cluster: its service ranges, and the way to its API server."""

    ranges: tuple[Network, ...]
    api: ApiServer


MakeRoute = Callable[[Tenancy, str, Served], Route]


@dataclass(slots=True)
class _Super:
    cluster: Cluster
    ranges: service_ranges.ServiceRanges
    is_lost: bool = False
    reported: float = -math.inf  # when another replica reported it as reachable
    timer: asyncio.TimerHandle | None = None


class SuperClusters:
    """The super clusters in a registry. `make` makes a tenant's route to one, with what it serves there.

    `changed` is called when the routes of all tenants have to be reconciled, `tenant_changed` with the key of one
    tenant. A super cluster is lost when it was
    unreachable for `lost_after` seconds; with an agent, which deletes its pods first, for `fence_grace` more. With a
    `marker`, tenants that another syncer serves are refused.
    """

    def __init__(
        self,
        registry: ClusterRegistry,
        make: MakeRoute,
        *,
        lost_after: float,
        fence_grace: float = 0.0,
        is_pooled: bool = False,
        relay: ApiRelay | None = None,
        clock: clock.Clock,
    ) -> None:
        self._is_pooled = is_pooled
        self.marker: serving.Marker | None = None
        self._registry, self._make, self._clock, self._relay = registry, make, clock, relay
        self._lost_after, self._fence_grace = lost_after, fence_grace
        self._supers: dict[str, _Super] = {}
        self._agents: set[str] = set()
        self.changed: Callable[[], None] = lambda: None
        self.tenant_changed: Callable[[str], None] = lambda _key: None

    def add(self, cluster: Cluster) -> Cluster:
        """Add a super cluster; it is used while it is in the registry."""
        self._supers[cluster.name] = _Super(cluster, service_ranges.ServiceRanges(cluster.client, clock=self._clock))
        cluster.health.listen(functools.partial(self._update_health, self._supers[cluster.name]))
        self._update_health(self._supers[cluster.name])
        return cluster

    def set_agent(self, name: str, *, has_agent: bool) -> None:
        """Set whether an agent deletes the pods of a super cluster that is cut off."""
        (self._agents.add if has_agent else self._agents.discard)(name)
        if (one := self._supers.get(name)) is not None:
            self._set_timer(one)

    def report_reachable(self, name: str) -> None:
        """A replica reports that it reaches a super cluster: its pods are not fenced, so it is not lost here either."""
        if (one := self._supers.get(name)) is not None:
            one.reported = self._clock.now()
            self._set_timer(one)

    def is_reported(self, name: str, *, within: float) -> bool:
        """Whether a replica reported a super cluster as reachable in the last seconds."""
        one = self._supers.get(name)
        return one is not None and self._clock.now() - one.reported < within

    def all(self) -> dict[str, Cluster]:
        """All super clusters in the registry, lost or not."""
        registered = self._registry.clusters
        return {name: one.cluster for name, one in self._supers.items() if registered.get(name) is one.cluster}

    async def routes(self, tenancy: Tenancy) -> list[Route]:
        """The routes of a tenant, one to each super cluster that is not lost."""
        serving = [self._supers[name] for name in self.all() if not self._supers[name].is_lost]
        wanted = service_ranges.of(tenancy.vc)
        found = await asyncio.gather(*(self._route(one, tenancy, wanted) for one in serving))
        routes = [route for route in found if route is not None]
        if not routes:
            raise NotSynced("NoSuperCluster", NONE_REACHABLE)
        return routes

    async def check(self, vc: Object) -> None:
        """Refuse a tenant that another syncer serves."""
        supers = self.all()
        if not self._is_pooled:
            for one in supers.values():
                with contextlib.suppress(errors.ApiError):  # it is checked at the start, too
                    await serving.check_unpooled(one.client)
        if self.marker is not None:
            ids = await members.ids_of(supers.values())
            if not ids:
                raise NotSynced("NoSuperCluster", NONE_REACHABLE)
            await serving.ensure(vc, ids, self.marker, is_pooled=self._is_pooled)

    async def _route(self, one: _Super, tenancy: Tenancy, wanted: Network | None) -> Route | None:
        """The route to one super cluster; the current one if it is unreachable."""
        current = self._current(one, tenancy)
        if not one.cluster.health.error:
            try:
                if current is None:
                    await self._check_data(one, tenancy)
                ranges = await one.ranges.ensure(tenancy.owner, wanted)
                return self._make(tenancy, one.cluster.name, Served(ranges, await self._api(one, tenancy)))
            except errors.Unreachable as error:
                log.warning("super cluster failed, retrying", extra={"cluster": one.cluster.name, "error": str(error)})
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self.changed)
        return current

    async def _api(self, one: _Super, tenancy: Tenancy) -> ApiServer:
        """The way of pods to the API server: by the relay, if there is one, unless it runs in this super cluster."""
        found = await api_addresses.of(tenancy.server, tenancy.owner.key, one.cluster.client)
        if self._relay is None or found.is_inside:
            return found
        return replace(found, endpoints=(await self._relay.endpoint(tenancy),), is_relayed=True)

    def _current(self, one: _Super, tenancy: Tenancy) -> Route | None:
        routes = self._registry.routes(tenancy.owner.key)
        return next((route for route in routes if route.lower == one.cluster.name), None)

    async def _check_data(self, one: _Super, tenancy: Tenancy) -> None:
        """Refuse a tenant whose control plane lost its data: its objects here must stay."""
        owner, id_ = tenancy.owner, tenancy.cluster_id
        if former := await data_loss.former_id(one.cluster.client, owner, id_):
            log.error("tenant lost its data", extra={"tenant": owner.key, "former": former, "now": id_})
            raise NotSynced(data_loss.REASON, data_loss.message(owner, one.cluster.name, former, id_))

    def _update_health(self, one: _Super) -> None:
        """Called when the health of a super cluster, or the reason why it is unreachable, changes."""
        self._set_timer(one)
        if not one.cluster.health.error:
            if one.is_lost:
                log.warning("lost super cluster recovered", extra={"cluster": one.cluster.name})
            one.is_lost = False
            self.changed()

    def _set_timer(self, one: _Super) -> None:
        """Set or cancel the timer after which it is lost."""
        if one.timer is not None:
            one.timer.cancel()
            one.timer = None
        if not one.cluster.health.error or one.is_lost or self._lost_after <= NEVER:
            return
        most = self._lost_after + (self._fence_grace if one.cluster.name in self._agents else 0.0)
        rest = max(0.0, max(one.cluster.health.answered, one.reported) + most - self._clock.now())
        one.timer = asyncio.get_running_loop().call_later(rest, self._lose, one)

    def _lose(self, one: _Super) -> None:
        one.timer, one.is_lost = None, True
        if self.all().get(one.cluster.name) is one.cluster:
            log.warning("super cluster lost", extra={"cluster": one.cluster.name, "seconds": self._lost_after})
        self.changed()
