"""`hansa vc-syncer`: wires the sync of tenants' objects to a super cluster, or to the super clusters of a pool."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from hansa.app import tenant_sharing
from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Scope
from hansa.control.manager import Component, Lead
from hansa.control.sharding.membership import Membership
from hansa.engine import task_set
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.engine.syncer import Syncer
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.sending import MaySend
from hansa.model.translation.tenant.tenant_settings import TenantSettings
from hansa.modes import virtualcluster, virtualcluster_route
from hansa.modes.virtualcluster_settings import VirtualClusterSettings as ModeSettings
from hansa.scheduling.pooling import pool_members
from hansa.scheduling.pooling.pool_members import PoolMembers
from hansa.scheduling.slicing.pool import Headroom
from hansa.tenancy import api, installing
from hansa.tenancy.pool import cluster_id, fence
from hansa.tenancy.pool.fence_renewal import FenceRenewer, FenceSettings
from hansa.tenancy.pool.placement_records import PlacementRecords
from hansa.tenancy.pool.reachability_reports import Reporter, Reports
from hansa.tenancy.syncing import api_addresses, serving
from hansa.tenancy.syncing.api_relay import ApiRelay, RelaySettings
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.dns_objects import NO_DNS, DnsSettings
from hansa.tenancy.syncing.members import Members
from hansa.tenancy.syncing.purging import Purging
from hansa.tenancy.syncing.service_reach import ServiceReach
from hansa.tenancy.syncing.super_clusters import NEVER, SuperClusters
from hansa.tenancy.syncing.tenant_dns import TenantDns

log = logging.getLogger(__name__)
COMPONENT = "vc-syncer"
SUPER, META = "super", "meta"  # names of the two clusters; a tenant's name is its key
CHECK_SECONDS = 5.0  # at the start, for the super cluster to say whether it belongs to a pool
MISSED_RENEWALS = 1.5  # of a fence by another replica, after which this one renews it
FIRST_LISTS = 60.0  # seconds, after which the program is ready although the meta cluster is unreachable


@dataclass(frozen=True, slots=True)
class SyncerSettings:
    """The settings of vc-syncer. Without `meta`, VirtualClusters are in the super cluster.

    Without `super_cluster`, it syncs to all super clusters of the meta cluster's pool.
    """

    super_cluster: CredentialSource | None
    meta: CredentialSource | None
    mode: ModeSettings
    tenants: TenantSettings  # defaults of all tenants; each VirtualCluster adds its own
    dns: DnsSettings = NO_DNS
    relay: RelaySettings | None = None
    name: str = "vc"
    lost_after: float = 60.0  # seconds that a super cluster of a pool may be unreachable before it is lost
    fence_grace: float = 30.0  # seconds more if an agent runs there, which deletes the pods first
    is_installed: bool = True
    metrics_address: str = ""
    election_namespace: str = ""
    sharing_namespace: str = ""  # replicas share the tenants, by Leases in this namespace of the meta cluster
    report_namespace: str = "kube-system"  # of the meta cluster, for the reachability reports


async def run(settings: SyncerSettings) -> None:
    """Sync until a signal ends the program; lower objects stay."""
    program, registry = Program(), ClusterRegistry()
    if settings.mode.isolates:
        # No API shows whether the network plugin enforces them: docs/security.md has a check.
        log.info("tenant isolation enabled", extra={"by": "NetworkPolicy", "enforced_by": "network plugin"})
    async with contextlib.AsyncExitStack() as stack:

        async def connected(name: str, source: CredentialSource) -> Cluster:
            client = await stack.enter_async_context(_client(await source.find()))
            if name == SUPER and settings.mode.pool is not None:
                name = await cluster_id.read(client)
            return program.cluster(name, client)

        supers = SuperClusters(
            registry,
            lambda tenancy, lower, served: virtualcluster_route.route(
                tenancy, lower, served, common=settings.tenants, is_pooled=settings.mode.pool is not None
            ),
            lost_after=settings.lost_after if settings.super_cluster is None else NEVER,
            fence_grace=settings.fence_grace,
            is_pooled=settings.mode.pool is not None,
            relay=_relay(settings, program, registry),
            clock=program.clock,
        )
        below = None if settings.super_cluster is None else await connected(SUPER, settings.super_cluster)
        meta = (
            below
            if settings.meta is None and below is not None
            else await connected(META, settings.meta or CredentialSource())
        )
        if below is not None:
            if settings.mode.pool is None:
                await _check_unpooled(below, meta)
            registry.join(supers.add(below))
        member = _member(settings, meta, program, supers)
        recorder = Recorder(f"hansa-{COMPONENT}", meta.client, **program.common())
        manager = program.manager
        manager.serve(Component("events", recorder.run, recorder.drain))
        records = await stack.enter_async_context(PlacementRecords(meta.client, meta.informers).opened())
        syncers = dict(_syncers(settings, program, registry, records))
        for name, syncer in syncers.items():
            manager.work(Component(name, syncer.run, syncer.drain))
        down = next(iter(syncers.values()))
        components = _Components(settings, program, registry, supers, meta, recorder, down, member)
        components.wire()
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, meta, program), *([] if member is None else [member.lead]))


def _relay(settings: SyncerSettings, program: Program, registry: ClusterRegistry) -> ApiRelay | None:
    """The relay to API servers of tenants as a component, if there is one."""
    if settings.relay is None:
        return None
    relay = ApiRelay(settings.relay, clock=program.clock, metrics=program.metrics)
    program.manager.work(Component("api-relay", functools.partial(relay.run, registry)))
    return relay


def _syncers(
    settings: SyncerSettings, program: Program, registry: ClusterRegistry, records: PlacementRecords
) -> Iterator[tuple[str, Syncer]]:
    """Two syncers: tenants' objects down, and objects that tenants share up."""
    down, up = virtualcluster.mode(settings.mode), virtualcluster.shared(settings.mode)
    # In super clusters only stamped objects are watched, since tenants' namespaces have no others, with one cache for
    # both syncers. The second one shares the watches of the first one in tenants' clusters, too.
    yield down.name, program.syncer(down, registry, watch_all=(), decisions=records)
    yield up.name, program.syncer(up, registry.reversed_routes(), watch_all=down.rules)


@dataclass(frozen=True, slots=True)
class _Components:
    """The components that need the id of the meta cluster."""

    settings: SyncerSettings
    program: Program
    registry: ClusterRegistry
    supers: SuperClusters
    meta: Cluster
    recorder: Recorder
    down: Syncer
    member: Membership | None

    def wire(self) -> None:
        """Add the components to the manager."""
        manager, is_pooled = self.program.manager, self.settings.mode.pool is not None
        manager.work(Component("tenants", self.follow_tenants, ready=self.ready))
        manager.work(Component("purging", self.purge))
        manager.work(Component("api-addresses", self.watch_api_addresses))
        if self.settings.super_cluster is None:
            manager.work(Component("pool", self.follow_pool))
        if is_pooled:
            manager.work(Component("service-reach", self.write_service_reach))
            manager.work(Component("fences", self.renew_fences))
        if is_pooled and self.member is not None:
            manager.work(Component("reports", self.watch_reports))

    async def follow_tenants(self) -> None:
        """Reconcile tenants in the registry."""
        conditions = TenantConditions(
            self.meta.client, self.recorder, full_limits=self.down.full_limits, clock=self.program.clock
        )
        self.supers.marker = conditions
        dns = TenantDns(self.settings.dns, self.supers.all, is_pooled=self.settings.mode.pool is not None)
        members = Members(
            self.registry,
            self.meta.informers,
            await self.meta.identify(),
            conditions=conditions,
            connect=lambda key, login: _client(login, may_send=tenant_sharing.may_write(self.member, key)),
            join=self._tenant,
            shares=self.member,
            bound=virtualcluster.bound,
            routes=self.supers.routes,
            check=self.supers.check,
            prepare=dns.ensure,
            **self.program.common(),
        )
        self.supers.changed, self.supers.tenant_changed = members.enqueue_all, members.enqueue
        with contextlib.ExitStack() as stack:
            stack.callback(self.down.listen_limits(members.enqueue))
            await members.run()

    def _tenant(self, name: str, client: Client) -> Cluster:
        return self.program.cluster(name, client, is_verified=True, budgets=virtualcluster.budgets())

    async def follow_pool(self) -> None:
        """Reconcile super clusters of the pool in the registry."""
        if self.settings.is_installed:
            await installing.install(self.meta.client)
        clusters = await pool_members.resource(self.meta.client, is_installed=self.settings.is_installed)
        members = PoolMembers(
            self.registry,
            self.meta.informers,
            clusters,
            connect=_client,
            join=lambda name, client: self.supers.add(self.program.cluster(name, client)),
            update_settings=lambda name, member: self.supers.set_agent(name, has_agent=member.has_agent),
            headroom=Headroom(),
            **self.program.common(),
        )
        await members.run()

    async def renew_fences(self) -> None:
        """Renew the fences of super clusters, each time after a reachability report to the meta cluster."""
        holder = f"hansa-{COMPONENT}"
        renewer = FenceRenewer(
            FenceSettings(holder, self.settings.lost_after, self.settings.fence_grace),
            self.meta.identify,
            report=Reporter(self.meta.client, holder, self.settings.report_namespace, self.program.clock).report,
            is_due=self._is_fence_due,
            clock=self.program.clock,
            metrics=self.program.metrics,
        )
        await task_set.maintain(
            "fence", self.supers.all, renewer.run, self.registry, supervisor=self.program.manager.supervisor
        )

    async def watch_reports(self) -> None:
        """Watch which super clusters the other replicas reach: their fences are renewed, so they are not lost."""
        reports = Reports(
            self.meta,
            self.settings.report_namespace,
            clusters=self.supers.all,
            report_reachable=self.supers.report_reachable,
            clock=self.program.clock,
        )
        await reports.run()

    def _is_fence_due(self, name: str) -> bool:
        """Of several replicas one renews a fence, and the others when it does not."""
        if self.member is None or self.member.owns(f"super/{name}"):
            return True
        return not self.supers.is_reported(name, within=MISSED_RENEWALS * self.settings.lost_after / fence.RENEWALS)

    async def purge(self) -> None:
        """Delete objects of deleted tenants in each super cluster."""
        meta_id = await self.meta.identify()

        async def purge(cluster: Cluster) -> None:
            common = self.program.common()
            informers = self.meta.informers
            purging = Purging(self.meta.client, informers, meta_id, super_cluster=cluster, shares=self.member, **common)
            await purging.run()

        await task_set.maintain(
            "purge", self.supers.all, purge, self.registry, supervisor=self.program.manager.supervisor
        )

    async def watch_api_addresses(self) -> None:
        """Reconcile a tenant when the pods of its API server in a super cluster change."""

        async def watch(cluster: Cluster) -> None:
            await api_addresses.watch(cluster, self._tenant_changed)

        await task_set.maintain(
            "api-addresses", self.supers.all, watch, self.registry, supervisor=self.program.manager.supervisor
        )

    def _tenant_changed(self, key: str) -> None:
        self.supers.tenant_changed(key)  # it is set when the meta cluster has been reached

    async def write_service_reach(self) -> None:
        """Write the condition of tenants' Services about the endpoints they reach."""
        pool = self.settings.mode.pool
        joined = pool is not None and pool.are_networks_joined

        async def write(tenant: Cluster) -> None:
            await ServiceReach(tenant, are_networks_joined=joined, **self.program.common()).run()

        await task_set.maintain(
            "service-reach", self._tenants, write, self.registry, supervisor=self.program.manager.supervisor
        )

    async def ready(self) -> None:
        """Wait for the first list of VirtualClusters."""
        async with self.meta.informers.share(Scope(api.VIRTUAL_CLUSTERS)) as vcs:
            await vcs.freshness.wait_synced(FIRST_LISTS)

    def _tenants(self) -> dict[str, Cluster]:
        return {name: self.registry.clusters[name] for name in self.registry.uppers()}


async def _check_unpooled(below: Cluster, meta: Cluster) -> None:
    """Refuse a super cluster of a pool. One that is unreachable now is checked when tenants are linked to it."""
    name = ""
    with contextlib.suppress(errors.ApiError, TimeoutError):
        async with asyncio.timeout(CHECK_SECONDS):
            await serving.check_unpooled(below.client)
            # A syncer without a pool may lack the right to list Clusters; one in the cluster of `hansa join` has it.
            name = await pool_members.find_name(meta.client, await below.identify())
    if name:
        raise serving.pooled(name, f"Cluster {name} of the meta cluster")


def _client(credentials: Credentials, *, may_send: MaySend | None = None) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE, may_send=may_send)


def _election(settings: SyncerSettings, meta: Cluster, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.elect(_lock(settings), meta, namespace=settings.election_namespace),)


def _member(settings: SyncerSettings, meta: Cluster, program: Program, supers: SuperClusters) -> Membership | None:
    if not settings.sharing_namespace:
        return None
    group, namespace = f"{settings.name}-syncer", settings.sharing_namespace
    return tenant_sharing.join(program, meta, supers.all, group=group, lock=_lock(settings), namespace=namespace)


def _lock(settings: SyncerSettings) -> str:
    return f"{settings.name}-syncer-leaderelection-lock"
