"""`hansa vc-syncer`: objects of tenants' control planes are carried to a super cluster, or to those of a pool."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Scope
from hansa.control.manager import Component, Lead
from hansa.engine import task_set
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import Registry
from hansa.engine.syncer import Syncer
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import Source
from hansa.model.translation.tenant.tenant_settings import Tenant
from hansa.modes import virtualcluster, virtualcluster_route
from hansa.modes.virtualcluster_settings import VirtualClusterSettings as ModeSettings
from hansa.scheduling.pooling import pool_members
from hansa.scheduling.pooling.pool_members import PoolMembers
from hansa.scheduling.slicing.pool import Headroom
from hansa.tenancy import api, installing
from hansa.tenancy.pool import cluster_id
from hansa.tenancy.pool.fence_renewal import FenceKeeper, Keeping
from hansa.tenancy.pool.reachability_reports import Reporter
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.members import Members
from hansa.tenancy.syncing.purging import Purging
from hansa.tenancy.syncing.service_reach import ServiceReach
from hansa.tenancy.syncing.super_clusters import NEVER, SuperClusters

log = logging.getLogger(__name__)
COMPONENT = "vc-syncer"
SUPER, META = "super", "meta"  # what we call the two; tenants are called by their keys
FIRST_LISTS = 60.0  # seconds, after which the program counts as ready although the meta cluster is away


@dataclass(frozen=True, slots=True)
class SyncerSettings:
    """What the syncer is told. Without `meta`, VirtualClusters are in the super cluster.

    Without `super_cluster`, all super clusters of the meta cluster's pool are served.
    """

    super_cluster: Source | None
    meta: Source | None
    mode: ModeSettings
    tenants: Tenant  # what is the same for all tenants; each VirtualCluster adds its own
    name: str = "vc"
    lost_after: float = 60.0  # seconds for which a super cluster of a pool may be away before it is taken out
    fence_grace: float = 30.0  # seconds more, where an agent ends its pods first
    is_installed: bool = True
    metrics_address: str = ""
    election_namespace: str = ""
    report_namespace: str = "kube-system"  # of the meta cluster, where it says which super clusters it reaches


async def run(settings: SyncerSettings) -> None:
    """Sync until a signal ends it; copies stay."""
    program, registry = Program(), Registry()
    async with contextlib.AsyncExitStack() as stack:

        async def reached(name: str, source: Source) -> Cluster:
            client = await stack.enter_async_context(_client(await source.find()))
            if name == SUPER and settings.mode.pool is not None:
                name = await cluster_id.read(client)
            return program.cluster(name, client)

        supers = SuperClusters(
            registry,
            lambda tenancy, lower, ranges: virtualcluster_route.route(
                tenancy, lower, ranges=ranges, common=settings.tenants, is_pooled=settings.mode.pool is not None
            ),
            lost_after=settings.lost_after if settings.super_cluster is None else NEVER,
            fence_grace=settings.fence_grace,
            clock=program.clock,
        )
        below = None if settings.super_cluster is None else await reached(SUPER, settings.super_cluster)
        meta = below if settings.meta is None and below is not None else await reached(META, settings.meta or Source())
        if below is not None:
            registry.join(supers.add(below))
        recorder = Recorder(f"hansa-{COMPONENT}", meta.client, **program.given())
        manager = program.manager
        manager.serve(Component("events", recorder.run, recorder.drain))
        for name, syncer in _syncers(settings, program, registry):
            manager.work(Component(name, syncer.run, syncer.drain))
        parts = _Parts(settings, program, registry, supers, meta, recorder)
        manager.work(Component("tenants", parts.follow, ready=parts.ready))
        manager.work(Component("purging", parts.purge))
        if below is None:
            manager.work(Component("pool", parts.gather))
        if settings.mode.pool is not None:
            manager.work(Component("service-reach", parts.tell_reach))
            manager.work(Component("fences", parts.keep_fences))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, meta, program))


def _syncers(settings: SyncerSettings, program: Program, registry: Registry) -> Iterator[tuple[str, Syncer]]:
    """One for each way."""
    down, up = virtualcluster.mode(settings.mode), virtualcluster.shared(settings.mode)
    # Nobody else has objects in tenants' namespaces, so copies alone are watched: in one cache for both ways.
    # What the way down watches in a tenant is not watched again for the way up.
    yield down.name, program.syncer(down, registry, whole=())
    yield up.name, program.syncer(up, registry.turned(), whole=down.rules)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts that begin when the meta cluster tells which one it is."""

    settings: SyncerSettings
    program: Program
    registry: Registry
    supers: SuperClusters
    meta: Cluster
    recorder: Recorder

    async def follow(self) -> None:
        """Let tenants join and leave."""
        members = Members(
            self.registry,
            self.meta.informers,
            await self.meta.identify(),
            telling=TenantConditions(self.meta.client, self.recorder, clock=self.program.clock),
            connect=_client,
            join=self.program.cluster,
            routes=self.supers.routes,
            **self.program.given(),
        )
        self.supers.changed = members.look_at_all
        await members.run()

    async def gather(self) -> None:
        """Let the super clusters of the pool join and leave."""
        if self.settings.is_installed:
            await installing.install(self.meta.client)
        clusters = await pool_members.resource(self.meta.client, is_installed=self.settings.is_installed)
        members = PoolMembers(
            self.registry,
            self.meta.informers,
            clusters,
            connect=_client,
            join=lambda name, client: self.supers.add(self.program.cluster(name, client)),
            learn=lambda name, facts: self.supers.learn(name, has_agent=facts.has_agent),
            headroom=Headroom(),
            **self.program.given(),
        )
        await members.run()

    async def keep_fences(self) -> None:
        """Renew the fences of super clusters, while the meta cluster takes the report."""
        holder = f"hansa-{COMPONENT}"
        keeper = FenceKeeper(
            Keeping(holder, self.settings.lost_after, self.settings.fence_grace),
            self.meta.identify,
            report=Reporter(self.meta.client, holder, self.settings.report_namespace, self.program.clock).report,
            clock=self.program.clock,
            metrics=self.program.metrics,
        )
        await task_set.maintain(
            "fence", self.supers.all, keeper.keep, self.registry, supervisor=self.program.manager.supervisor
        )

    async def purge(self) -> None:
        """Remove what is left of tenants that are gone, in each super cluster."""
        meta_id = await self.meta.identify()

        async def tidy(cluster: Cluster) -> None:
            given = self.program.given()
            purging = Purging(self.meta.client, self.meta.informers, meta_id, super_cluster=cluster, **given)
            await purging.run()

        await task_set.maintain(
            "purge", self.supers.all, tidy, self.registry, supervisor=self.program.manager.supervisor
        )

    async def tell_reach(self) -> None:
        """Tell on tenants' Services whom they reach."""
        pool = self.settings.mode.pool
        joined = pool is not None and pool.are_networks_joined

        async def tell(tenant: Cluster) -> None:
            await ServiceReach(tenant, are_networks_joined=joined, **self.program.given()).run()

        await task_set.maintain(
            "service-reach", self._tenants, tell, self.registry, supervisor=self.program.manager.supervisor
        )

    async def ready(self) -> None:
        """Wait until it is known which tenants there are."""
        async with self.meta.informers.share(Scope(api.VIRTUAL_CLUSTERS)) as vcs:
            await vcs.knowledge.wait_complete(FIRST_LISTS)

    def _tenants(self) -> dict[str, Cluster]:
        return {name: self.registry.clusters[name] for name in self.registry.uppers()}


def _client(credentials: Credentials) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)


def _election(settings: SyncerSettings, meta: Cluster, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    name = f"{settings.name}-syncer-leaderelection-lock"
    return (program.elect(name, meta, namespace=settings.election_namespace),)
