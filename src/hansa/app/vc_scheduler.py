"""`hansa vc-scheduler`: wires the schedulers that place tenants' namespaces and pods in a pool of super clusters."""

import contextlib
import functools
import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Scope
from hansa.control.manager import Component, Lead
from hansa.control.store import Store
from hansa.engine import task_set
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import Object
from hansa.model import tenant_names
from hansa.scheduling.pooling import pool_members
from hansa.scheduling.pooling.pool_cluster import LossTimeout
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.pool_members import PoolMembers
from hansa.scheduling.pooling.pool_scheduler import PoolScheduler
from hansa.scheduling.slicing import annotations, pool
from hansa.tenancy import api, installing
from hansa.tenancy.pool.fence_renewal import AgentAnnotations, FenceRenewer, FenceSettings
from hansa.tenancy.pool.placement_records import PlacementRecords
from hansa.tenancy.pool.reachability_reports import Reports
from hansa.tenancy.syncing import dns_objects
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.members import Members, Tenancy

log = logging.getLogger(__name__)
COMPONENT = "vc-scheduler"
LEASE = "vc-scheduler-leaderelection-lock"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The settings of vc-scheduler."""

    meta: CredentialSource
    placing: annotations.PoolSettings
    headroom: pool.Headroom = field(default_factory=pool.Headroom)
    lost_after: float = 60.0  # seconds that a super cluster may be unreachable before its slices are placed elsewhere
    fence_grace: float = 30.0  # seconds more if an agent runs there, which deletes the pods first
    is_installed: bool = True
    metrics_address: str = ""
    election_namespace: str = ""
    report_namespace: str = "kube-system"  # of the meta cluster, for the reachability reports of vc-syncer


async def run(settings: SchedulerSettings) -> None:
    """Schedule until a signal ends the program; placements stay."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(await settings.meta.find()))
        if settings.is_installed:
            await installing.install(client)
        clusters = await pool_members.resource(client, is_installed=settings.is_installed)
        meta = program.cluster("meta", client)
        tenants, supers = ClusterRegistry(), ClusterRegistry()
        supervisor = program.manager.supervisor
        loss_timeout = LossTimeout(settings.lost_after, settings.fence_grace)
        pool_clusters = PoolClusters(supers, clock=program.clock, loss_timeout=loss_timeout, supervisor=supervisor)
        members = PoolMembers(
            supers,
            meta.informers,
            clusters,
            connect=_client,
            join=program.cluster,
            update_settings=pool_clusters.update_settings,
            leave=pool_clusters.absent.leave,
            headroom=settings.headroom,
            **program.common(),
        )
        vcs = _Tenants(program, meta, tenants)
        records = await stack.enter_async_context(PlacementRecords(client, meta.informers).opened())
        scheduler = PoolScheduler(
            tenants,
            pool_clusters,
            settings=settings.placing,
            records=records,
            below=tenant_names.super_namespace,
            unsliced=frozenset({dns_objects.NAMESPACE}),
            is_pool_known=lambda: members.is_known,
            are_uppers_known=lambda: vcs.are_known,
            recorder=functools.partial(_recorder, program),
            supervisor=supervisor,
            **program.common(),
        )
        manager = program.manager
        manager.work(Component("pool", members.run, members.drain))
        manager.work(Component("pool-clusters", pool_clusters.run))
        manager.work(Component("tenants", vcs.run))
        manager.work(Component("scheduler", scheduler.run, scheduler.drain, ready=scheduler.ready))
        recorder = _recorder(program, meta)
        manager.serve(Component("events", recorder.run, recorder.drain))
        agents = AgentAnnotations(client, clusters, members.cluster, recorder=recorder)
        # Only the leader renews: it may have lost a super cluster that this process, on standby, still reaches.
        manager.work(Component("fences", functools.partial(_renew_fences, settings, program, meta, supers, agents)))
        manager.work(
            Component("reports", functools.partial(_watch_reports, settings, program, meta, supers, pool_clusters))
        )
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, meta, program))


async def _renew_fences(
    settings: SchedulerSettings, program: Program, meta: Cluster, supers: ClusterRegistry, agents: AgentAnnotations
) -> None:
    """Renew the fences of super clusters, and annotate Clusters with whether an agent is present."""
    renewer = FenceRenewer(
        FenceSettings(f"hansa-{COMPONENT}", settings.lost_after, settings.fence_grace),
        meta.identify,
        report_agent=agents.update,
        clock=program.clock,
        metrics=program.metrics,
    )
    await task_set.maintain(
        "fence", lambda: supers.clusters, renewer.run, supers, supervisor=program.manager.supervisor
    )


async def _watch_reports(
    settings: SchedulerSettings, program: Program, meta: Cluster, supers: ClusterRegistry, pool_clusters: PoolClusters
) -> None:
    """Do not count a super cluster as lost that vc-syncer reaches."""
    where = settings.report_namespace
    reports = Reports(
        meta,
        where,
        clusters=lambda: (*supers.clusters, *pool_clusters.absent.closed),
        report_reachable=pool_clusters.report_reachable,
        clock=program.clock,
    )
    await reports.run()


class _Tenants:
    """Adds running VirtualClusters to the registry, as vc-syncer does, without writing their conditions."""

    def __init__(self, program: Program, meta: Cluster, registry: ClusterRegistry) -> None:
        self._program, self._meta, self._registry = program, meta, registry
        self._vcs: Store | None = None

    @property
    def are_known(self) -> bool:
        """Whether all running VirtualClusters are in the registry."""
        if self._vcs is None or not self._vcs.freshness.has_synced:
            return False
        running = [vc for vc in map(api.virtual_cluster, self._vcs.values()) if vc.is_running and not vc.is_deleting]
        return all(vc.root in self._registry.clusters for vc in running)

    async def run(self) -> None:
        """Reconcile the registry until cancelled."""
        async with self._meta.informers.share(Scope(api.VIRTUAL_CLUSTERS)) as self._vcs:
            await self._run_members()

    async def _run_members(self) -> None:
        members = Members(
            self._registry,
            self._meta.informers,
            await self._meta.identify(),
            conditions=_LoggedConditions(
                self._meta.client, _recorder(self._program, self._meta), clock=self._program.clock
            ),
            connect=lambda _key, credentials: _client(credentials),
            join=self._program.cluster,
            routes=_to_itself,
            **self._program.common(),
        )
        await members.run()


async def _to_itself(tenancy: Tenancy) -> tuple[Route]:
    """The scheduler only reads and annotates tenants' objects, so a tenant has no route to a super cluster."""
    return (Route(tenancy.owner.key, tenancy.owner.key),)


class _LoggedConditions(TenantConditions):
    """Logs a tenant that cannot be scheduled. Its conditions are written by vc-syncer."""

    async def set_synced(self, vc: Object) -> bool:
        """Left to vc-syncer."""
        return False

    async def add_super_clusters(self, vc: Object, supers: Collection[str]) -> None:
        """Left to vc-syncer."""

    async def set_not_synced(self, vc: Object, reason: str, message: str) -> None:
        log.warning("tenant not scheduled", extra={"vc": str(vc.key), "reason": reason, "error": message})


def _recorder(program: Program, cluster: Cluster) -> Recorder:
    return Recorder(f"hansa-{COMPONENT}", cluster.client, **program.common())


def _client(credentials: Credentials) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)


def _election(settings: SchedulerSettings, meta: Cluster, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.elect(LEASE, meta, namespace=settings.election_namespace),)
