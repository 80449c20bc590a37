"""`hansa vc-manager`: a control plane for each VirtualCluster of a meta cluster."""

import functools
import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from hansa.app.program import Program, agent
from hansa.control.election import Election
from hansa.control.events import Recorder
from hansa.control.informer import Informers
from hansa.control.manager import Lead, Part
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials.source import Source
from hansa.modes import virtualcluster
from hansa.modes.virtualcluster_settings import Settings as ModeSettings
from hansa.runtime.clock import Clock
from hansa.tenancy import cluster_versions, installing
from hansa.tenancy.controller import VirtualClusters
from hansa.tenancy.existing import Existing
from hansa.tenancy.process import leftovers
from hansa.tenancy.process import provisioner as processes
from hansa.tenancy.process.provisioner import ProcessProvisioner
from hansa.tenancy.provisioning import Provisioner
from hansa.tenancy.service_pool import ServicePool
from hansa.tenancy.statefulset import StatefulSets

COMPONENT = "vc-manager"
LEASE = "vc-manager-leaderelection-lock"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the manager is told. `process` is for the provisioner of that name."""

    meta: Source
    provisioner: str
    process: processes.Settings
    pool: ServicePool
    workers: int = 10
    deadline: float = 600.0
    is_installed: bool = True
    metrics_address: str = ""
    election_namespace: str = ""


async def run(settings: Settings) -> None:
    """Look after VirtualClusters until a signal ends it; their control planes go on."""
    program = Program()
    access = await settings.meta.find()
    async with Client(access, user_agent=agent(COMPONENT)) as client:
        if settings.is_installed:
            await installing.install(client, cluster_versions.samples())
        informers = program.informers("meta", client)
        recorder = Recorder(COMPONENT, client, **program.given())
        found = provisioners(settings, client, meta=await _identify(client), clock=program.clock)
        tenants = VirtualClusters(
            client,
            informers,
            provisioners=found,
            default=settings.provisioner,
            pool=settings.pool,
            recorder=recorder,
            workers=settings.workers,
            deadline=settings.deadline,
            **program.given(),
        )
        manager = program.manager
        manager.serve(Part("events", recorder.run, recorder.drain))
        manager.work(Part("virtual clusters", tenants.run, tenants.drain, ready=tenants.ready))
        manager.work(Part("audit", tenants.audit))
        for name, provisioner in found.items():
            manager.work(Part(f"provisioner {name}", functools.partial(provisioner.run, tenants.wake)))
            if isinstance(provisioner, ProcessProvisioner):
                look = functools.partial(leftovers.sweep, provisioner, client, informers=informers, clock=program.clock)
                manager.work(Part("leftovers", look))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run(*_election(settings, client, informers, program))


async def _identify(client: Client) -> str:
    return (await client.get(resources.NAMESPACES, "kube-system")).uid


def provisioners(settings: Settings, client: Client, *, meta: str, clock: Clock) -> Mapping[str, Provisioner]:
    """The provisioners that serve: the one that was chosen, and clusters that are there already."""
    chosen: Provisioner | None = None
    match settings.provisioner:
        case ProcessProvisioner.name:
            chosen = ProcessProvisioner(settings.process, meta=meta)
        case StatefulSets.name:
            chosen = StatefulSets(client)
    given = [kind for kind, rule in virtualcluster.shared(ModeSettings()).rules.items() if rule.travels]
    existing: Provisioner = Existing(client, given=given, user_agent=agent(COMPONENT), clock=clock)
    return {one.name: one for one in (chosen, existing) if one is not None}


def _election(settings: Settings, client: Client, informers: Informers, program: Program) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    election = Election(
        LEASE,
        namespace=settings.election_namespace,
        identity=f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
        client=client,
        informers=informers,
        **program.given(),
    )
    return (election.lead,)
