"""`hansa vc-manager`: wires the controller of VirtualClusters and the provisioners of their control planes."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Informers
from hansa.control.manager import Component, Lead
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import virtualcluster
from hansa.modes.virtualcluster_settings import VirtualClusterSettings as ModeSettings
from hansa.runtime.clock import Clock
from hansa.tenancy import installing
from hansa.tenancy.operator import cluster_versions, etcd_storage
from hansa.tenancy.operator.controller import VirtualClusters
from hansa.tenancy.operator.etcd_storage import EtcdStorage
from hansa.tenancy.operator.existing import Existing
from hansa.tenancy.operator.process import orphans
from hansa.tenancy.operator.process import provisioner as processes
from hansa.tenancy.operator.process.folder import Origin
from hansa.tenancy.operator.process.provisioner import ProcessProvisioner
from hansa.tenancy.operator.provisioning import Provisioner
from hansa.tenancy.operator.service_address import Access
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool
from hansa.tenancy.operator.statefulset import StatefulSets

COMPONENT = "vc-manager"
LEASE = "vc-manager-leaderelection-lock"


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """The settings of vc-manager. `process` is used by the provisioner of that name only."""

    meta: CredentialSource
    provisioner: str
    process: processes.ProcessSettings
    pool: ServiceCidrPool
    vn_agent_ca: bytes = b""  # PEM; API servers verify vn-agents by it
    storage: EtcdStorage = etcd_storage.DEFAULT
    access: Access = Access.SERVICE
    workers: int = 10
    deadline: float = 600.0
    is_installed: bool = True
    has_samples: bool = True
    metrics_address: str = ""
    election_namespace: str = ""


async def run(settings: ManagerSettings) -> None:
    """Reconcile VirtualClusters until a signal ends the program; their control planes keep running."""
    program = Program()
    access = await settings.meta.find()
    async with Client(access, user_agent=agent(COMPONENT)) as client:
        if settings.is_installed:
            await installing.install(client)
        if settings.has_samples:
            await installing.add(client, cluster_versions.samples())
        informers = program.informers("meta", client)
        recorder = Recorder(COMPONENT, client, **program.common())
        meta, origin = await _identify(client), await _origin(settings.meta, client)
        found = provisioners(settings, client, meta=meta, origin=origin, clock=program.clock)
        tenants = VirtualClusters(
            client,
            informers,
            provisioners=found,
            default=settings.provisioner,
            pool=settings.pool,
            recorder=recorder,
            workers=settings.workers,
            deadline=settings.deadline,
            **program.common(),
        )
        manager = program.manager
        manager.serve(Component("events", recorder.run, recorder.drain))
        manager.work(Component("virtualclusters", tenants.run, tenants.drain, ready=tenants.ready))
        manager.work(Component("audit", tenants.audit))
        for name, provisioner in found.items():
            manager.work(Component(f"provisioner-{name}", functools.partial(provisioner.run, tenants.requeue)))
            if isinstance(provisioner, ProcessProvisioner):
                sweep = functools.partial(orphans.sweep, provisioner, client, informers=informers, clock=program.clock)
                manager.work(Component("orphans", sweep))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, client, informers, program))


async def _identify(client: Client) -> str:
    return (await client.get(resources.NAMESPACES, "kube-system")).uid


async def _origin(meta: CredentialSource, client: Client) -> Origin:
    """Where the meta cluster is, for `hansa tenants`."""
    access = await client.credentials.access()
    files = tuple(str(path.absolute()) for path in access.login.files)
    return Origin(access.server, files, meta.context)


def provisioners(
    settings: ManagerSettings, client: Client, *, meta: str, origin: Origin | None = None, clock: Clock
) -> Mapping[str, Provisioner]:
    """The provisioners by name: the one chosen by --provisioner, and `existing`."""
    chosen: Provisioner | None = None
    match settings.provisioner:
        case ProcessProvisioner.name:
            chosen = ProcessProvisioner(settings.process, meta=meta, origin=origin)
        case StatefulSets.name:
            chosen = StatefulSets(
                client, vn_agent_ca=settings.vn_agent_ca, storage=settings.storage, access=settings.access
            )
    synced = [kind for kind, rule in virtualcluster.shared(ModeSettings()).rules.items() if rule.is_synced]
    existing: Provisioner = Existing(client, synced=synced, user_agent=agent(COMPONENT), clock=clock)
    return {one.name: one for one in (chosen, existing) if one is not None}


def _election(settings: ManagerSettings, client: Client, informers: Informers, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.lead(program.election(LEASE, client, informers, namespace=settings.election_namespace)),)
