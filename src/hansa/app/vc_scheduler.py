"""`hansa vc-scheduler`: places the namespaces of tenants in a pool of super clusters, and their pods within."""

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
from hansa.engine.registry import Registry, Route
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import Source
from hansa.kube.objects import Object
from hansa.model import tenant_names
from hansa.scheduling.pooling import annotations, pool_members
from hansa.scheduling.pooling.pool_cluster import Patience
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.pool_members import PoolMembers
from hansa.scheduling.pooling.pool_scheduler import PoolScheduler
from hansa.scheduling.slicing import pool
from hansa.tenancy import api, installing
from hansa.tenancy.pool.fence_renewal import AgentNotes, FenceKeeper, Keeping
from hansa.tenancy.pool.reachability_reports import Reports
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.members import Members, Tenancy

log = logging.getLogger(__name__)
COMPONENT = "vc-scheduler"
LEASE = "vc-scheduler-leaderelection-lock"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What the scheduler is told."""

    meta: Source
    placing: annotations.PoolSettings
    headroom: pool.Headroom = field(default_factory=pool.Headroom)
    lost_after: float = 60.0  # seconds for which a super cluster may be away before all there is placed elsewhere
    fence_grace: float = 30.0  # seconds more, where an agent ends its pods first
    is_installed: bool = True
    metrics_address: str = ""
    election_namespace: str = ""
    report_namespace: str = "kube-system"  # of the meta cluster, where syncers say which super clusters they reach


async def run(settings: SchedulerSettings) -> None:
    """Schedule until a signal ends it; what was placed stays."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(await settings.meta.find()))
        if settings.is_installed:
            await installing.install(client)
        clusters = await pool_members.resource(client, is_installed=settings.is_installed)
        meta = program.cluster("meta", client)
        tenants, supers = Registry(), Registry()
        supervisor = program.manager.supervisor
        patience = Patience(settings.lost_after, settings.fence_grace)
        landscape = PoolClusters(supers, clock=program.clock, patience=patience, supervisor=supervisor)
        members = PoolMembers(
            supers,
            meta.informers,
            clusters,
            connect=_client,
            join=program.cluster,
            learn=landscape.learn,
            headroom=settings.headroom,
            **program.given(),
        )
        following = _Tenants(program, meta, tenants)
        scheduler = PoolScheduler(
            tenants,
            landscape,
            settings=settings.placing,
            below=tenant_names.super_namespace,
            is_pool_known=lambda: members.is_known,
            are_uppers_known=lambda: following.are_known,
            recorder=functools.partial(_recorder, program),
            supervisor=supervisor,
            **program.given(),
        )
        manager = program.manager
        manager.work(Component("pool", members.run, members.drain))
        manager.work(Component("landscape", landscape.run))
        manager.work(Component("tenants", following.run))
        manager.work(Component("scheduler", scheduler.run, scheduler.drain, ready=scheduler.ready))
        recorder = _recorder(program, meta)
        manager.serve(Component("events", recorder.run, recorder.drain))
        notes = AgentNotes(client, clusters, members.cluster, recorder=recorder)
        # Standing by it must not renew: who leads may have lost a super cluster that this process reaches.
        manager.work(Component("fences", functools.partial(_keep_fences, settings, program, meta, supers, notes)))
        manager.work(Component("reports", functools.partial(_hear_reports, settings, program, meta, supers, landscape)))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, meta, program))


async def _keep_fences(
    settings: SchedulerSettings, program: Program, meta: Cluster, supers: Registry, notes: AgentNotes
) -> None:
    """Renew the fences of super clusters, and write down where agents look at them."""
    keeper = FenceKeeper(
        Keeping(f"hansa-{COMPONENT}", settings.lost_after, settings.fence_grace),
        meta.identify,
        tell=notes.tell,
        clock=program.clock,
        metrics=program.metrics,
    )
    await task_set.maintain(
        "fence", lambda: supers.clusters, keeper.keep, supers, supervisor=program.manager.supervisor
    )


async def _hear_reports(
    settings: SchedulerSettings, program: Program, meta: Cluster, supers: Registry, landscape: PoolClusters
) -> None:
    """Give up no super cluster that a syncer reaches."""
    where = settings.report_namespace
    reports = Reports(meta, where, clusters=lambda: supers.clusters, vouch=landscape.vouch, clock=program.clock)
    await reports.run()


class _Tenants:
    """Lets VirtualClusters take part. They are followed as the syncer follows them, but nothing is told about them."""

    def __init__(self, program: Program, meta: Cluster, registry: Registry) -> None:
        self._program, self._meta, self._registry = program, meta, registry
        self._vcs: Store | None = None

    @property
    def are_known(self) -> bool:
        """Whether all that run take part."""
        if self._vcs is None or not self._vcs.knowledge.is_complete:
            return False
        running = [vc for vc in map(api.virtual_cluster, self._vcs.values()) if vc.is_running and not vc.is_leaving]
        return all(vc.root in self._registry.clusters for vc in running)

    async def run(self) -> None:
        """Follow them."""
        async with self._meta.informers.share(Scope(api.VIRTUAL_CLUSTERS)) as self._vcs:
            await self._follow()

    async def _follow(self) -> None:
        given = self._program.given()
        members = Members(
            self._registry,
            self._meta.informers,
            await self._meta.identify(),
            telling=_Silent(self._meta.client, _recorder(self._program, self._meta), clock=self._program.clock),
            connect=_client,
            join=self._program.cluster,
            routes=_to_itself,
            **given,
        )
        await members.run()


async def _to_itself(tenancy: Tenancy, _tenant: Client) -> tuple[Route]:
    """Only who takes part is asked."""
    return (Route(tenancy.owner.key, tenancy.owner.key),)


class _Silent(TenantConditions):
    async def well(self, vc: Object) -> None:
        """The syncer tells it."""

    async def gives(self, vc: Object, supers: Collection[str]) -> None:
        """The syncer does."""

    async def trouble(self, vc: Object, reason: str, message: str) -> None:
        log.warning("a tenant does not take part", extra={"vc": str(vc.key), "reason": reason, "says": message})


def _recorder(program: Program, cluster: Cluster) -> Recorder:
    return Recorder(f"hansa-{COMPONENT}", cluster.client, **program.given())


def _client(credentials: Credentials) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)


def _election(settings: SchedulerSettings, meta: Cluster, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.elect(LEASE, meta, namespace=settings.election_namespace),)
