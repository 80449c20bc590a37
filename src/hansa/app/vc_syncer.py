"""`hansa vc-syncer`: objects of tenants' control planes are carried to a super cluster, and what comes of them back."""

import contextlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from hansa.app.program import Program, agent
from hansa.control.events import Recorder
from hansa.control.informer import Scope
from hansa.control.manager import Lead, Part
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import Registry, Route, Routes
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import Source
from hansa.model import keys
from hansa.model.mode import Mode
from hansa.model.translation.tenant.settings import Allowance, Tenant
from hansa.modes import virtualcluster
from hansa.modes.virtualcluster_settings import Settings as ModeSettings
from hansa.tenancy import api
from hansa.tenancy.members import Members, Tenancy
from hansa.tenancy.purging import Purging
from hansa.tenancy.service_ranges import ServiceRanges
from hansa.tenancy.telling import Telling

log = logging.getLogger(__name__)
COMPONENT = "vc-syncer"
SUPER, META = "super", "meta"  # what we call the two; tenants are called by their keys
FIRST_LISTS = 60.0  # seconds, after which the program counts as ready although the meta cluster is away


@dataclass(frozen=True, slots=True)
class Settings:
    """What the syncer is told. Without `meta`, VirtualClusters are in the super cluster."""

    super_cluster: Source
    meta: Source | None
    mode: ModeSettings
    tenants: Tenant  # what is the same for all tenants; each VirtualCluster adds its own
    name: str = "vc"
    metrics_address: str = ""
    election_namespace: str = ""


async def run(settings: Settings) -> None:
    """Sync until a signal ends it; copies stay."""
    program, registry = Program(), Registry()
    async with contextlib.AsyncExitStack() as stack:

        async def reached(name: str, source: Source) -> Cluster:
            client = await stack.enter_async_context(_client(await source.find()))
            return program.cluster(name, client)

        below = await reached(SUPER, settings.super_cluster)
        meta = below if settings.meta is None else await reached(META, settings.meta)
        registry.join(below)
        recorder = Recorder(f"hansa-{COMPONENT}", meta.client, **program.given())
        manager = program.manager
        manager.serve(Part("events", recorder.run, recorder.drain))
        ways: tuple[tuple[Mode, Routes], ...] = (
            (virtualcluster.mode(settings.mode), registry),
            (virtualcluster.shared(settings.mode), registry.turned()),
        )
        for mode, routes in ways:
            # Nobody else has objects in tenants' namespaces, so copies alone are watched: in one cache for both ways.
            syncer = program.syncer(mode, routes, whole=())
            manager.work(Part(mode.name, syncer.run, syncer.drain))
        parts = _Tenants(settings, program, registry, below, meta, recorder)
        manager.work(Part("tenants", parts.follow, ready=parts.ready))
        manager.work(Part("purging", parts.purge))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, meta, program))


@dataclass(frozen=True, slots=True)
class _Tenants:
    """The parts that begin when the meta cluster tells which one it is."""

    settings: Settings
    program: Program
    registry: Registry
    below: Cluster
    meta: Cluster
    recorder: Recorder

    async def follow(self) -> None:
        """Let tenants join and leave."""
        given = self.program.given()
        members = Members(
            self.registry,
            self.meta.informers,
            await self.meta.identify(),
            ranges=ServiceRanges(self.below.client, clock=self.program.clock),
            telling=Telling(self.meta.client, self.recorder, clock=self.program.clock),
            connect=_client,
            join=self.program.cluster,
            route=lambda tenancy: route(tenancy, self.settings.tenants),
            **given,
        )
        await members.run()

    async def purge(self) -> None:
        """Remove what is left of tenants that are gone."""
        meta_id = await self.meta.identify()
        purging = Purging(
            self.meta.client, self.meta.informers, meta_id, super_cluster=self.below, **self.program.given()
        )
        await purging.run()

    async def ready(self) -> None:
        """Wait until it is known which tenants there are."""
        async with self.meta.informers.share(Scope(api.VIRTUAL_CLUSTERS)) as vcs:
            await vcs.knowledge.wait_complete(FIRST_LISTS)


def route(tenancy: Tenancy, common: Tenant) -> Route:
    """The way of a tenant's objects, as its VirtualCluster says."""
    vc, owner, annotations = api.virtual_cluster(tenancy.vc), tenancy.owner, tenancy.vc.annotations
    server = urlsplit(tenancy.server)
    weight = _weight(annotations.get(keys.WEIGHT, ""))
    tenant = replace(
        common,
        key=owner.key,
        name=owner.name,
        namespace=owner.namespace,
        uid=owner.uid,
        meta=owner.meta,
        cluster_domain=vc.domain,
        opaque_prefixes=vc.spec.opaque_meta_prefixes,
        transparent_prefixes=vc.spec.transparent_meta_prefixes,
        allowed=common.allowed | allowances(annotations.get(keys.ALLOW, "").split(",")),
        keeps_service_ips=bool(tenancy.ranges),
        api_host=server.hostname or "",
        api_port=str(server.port or 443),
        weight=weight,
    )
    return Route(owner.key, SUPER, tenant, weight=weight)


def allowances(words: Iterable[str]) -> frozenset[Allowance]:
    """What is allowed by name. What nobody knows allows nothing."""
    known = {allowance.value: allowance for allowance in Allowance}
    return frozenset(known[word.strip()] for word in words if word.strip() in known)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0.01 <= weight <= 100 else 1.0


def _client(credentials: Credentials) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)


def _election(settings: Settings, meta: Cluster, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    name = f"{settings.name}-syncer-leaderelection-lock"
    return (program.elect(name, meta, namespace=settings.election_namespace),)
