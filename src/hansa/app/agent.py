"""`hansa agent`: wires the federation of one cluster, as a source, a target, or both."""

import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from hansa.admission import configuration
from hansa.admission.settings import WebhookSettings
from hansa.app import admission
from hansa.app.program import UPPER, Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.manager import Component, Lead
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.federation import installing, uninstalling
from hansa.federation.binder import Binder
from hansa.federation.conditions import Conditions
from hansa.federation.delegate_endpoints import DelegateEndpoints
from hansa.federation.leaving import Leaving
from hansa.federation.multicluster_services import MulticlusterServices
from hansa.federation.service_reroute import ServiceReroute
from hansa.federation.sources import Sources
from hansa.federation.summary_publisher import SummaryPublisher
from hansa.federation.target_views import TargetViews
from hansa.federation.targets import Source, Targets
from hansa.federation.unelected_pods import UnelectedPods
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName
from hansa.kubelet.access import NodeAccess
from hansa.kubelet.certificates import Serving
from hansa.kubelet.node_servers import NodeServers
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.signing import SignedCertificate
from hansa.modes import admiralty, admiralty_admission
from hansa.modes.admiralty_settings import AdmiraltySettings
from hansa.nodes import own_address
from hansa.nodes.controller import VirtualNodes
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
COMPONENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The settings of the agent. `webhook` is None for one that listens on this machine's address, on any free port."""

    cluster: CredentialSource
    name: str = ""  # of this cluster, on its copies in targets
    mode: AdmiraltySettings = field(default_factory=AdmiraltySettings)
    webhook: WebhookSettings | None = None
    serves_webhook: bool = True
    installs: bool = True  # definitions, roles of sources, the webhook's configuration
    controls_sources: bool = True
    makes_tokens: bool = True  # a token Secret for each service account of a source
    deployment: NamespacedName | None = None  # of agents, which is stopped before the uninstallation
    metrics_address: str = ""
    election_namespace: str = ""


async def run(settings: AgentSettings) -> None:
    """Serve the federation of one cluster until a signal ends the program."""
    program = Program()
    access = await settings.cluster.find()
    async with Client(access, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE) as client:
        if settings.installs:
            await installing.install(client)
        cluster = program.cluster(UPPER, client)
        recorder = Recorder(f"hansa-{COMPONENT}", client, **program.common())
        program.manager.serve(Component("events", recorder.run, recorder.drain))
        parts = _Agent(settings, program, cluster, recorder)
        parts.wire()
        parts.wire_services()
        async with _webhook(settings, program, client):
            if settings.metrics_address:
                program.serve_health(settings.metrics_address)
            await program.manager.run(*_election(settings, program, cluster))


async def uninstall(settings: AgentSettings) -> None:
    """Remove the federation from a cluster, as long as it takes."""
    program = Program()
    access = await settings.cluster.find()
    async with Client(access, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE) as client:
        if settings.deployment:
            await uninstalling.stop_agents(client, settings.deployment, program.clock)
        await configuration.uninstall(client, admiralty_admission.CONFIGURATION_NAME)
        await installing.install(client)  # without the definitions, what is left could not be found
        cluster = program.cluster(UPPER, client)
        recorder = Recorder(f"hansa-{COMPONENT}", client, **program.common())
        every_kind = replace(settings.mode, follows_service_accounts=True, exports_services=True)
        _Agent(replace(settings, mode=every_kind), program, cluster, recorder).wire()

        failures: list[HansaError] = []

        async def remove() -> None:
            try:
                await uninstalling.uninstall(client, program.clock)
            except HansaError as error:
                failures.append(error)
            program.manager.stop()

        program.manager.serve(Component("uninstall", remove))
        await program.manager.run()
        if failures:
            raise failures[0]


def _election(settings: AgentSettings, program: Program, cluster: Cluster) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.elect("hansa-agent", cluster, namespace=settings.election_namespace),)


class _Agent:
    """The components that work while this process leads."""

    def __init__(self, settings: AgentSettings, program: Program, cluster: Cluster, recorder: Recorder) -> None:
        self._settings, self._program, self._cluster, self._recorder = settings, program, cluster, recorder
        self._conditions = Conditions(cluster.client, recorder, clock=program.clock)
        self._views = TargetViews()
        self._registry = ClusterRegistry()
        self._registry.join(cluster)
        self._registry.follow(cluster.name)
        self._mode = admiralty.mode(settings.mode)
        # The names of delegates are unique, so other pods of targets need not be watched.
        self._syncer = program.syncer(self._mode, self._registry, watch_all=())

    def wire(self) -> None:
        """Add the components to the manager."""
        manager, common = self._program.manager, self._program.common()
        summary = SummaryPublisher(self._cluster, clock=self._program.clock)
        manager.work(Component("summary", summary.run))
        if self._settings.controls_sources:
            sources = Sources(
                self._cluster, conditions=self._conditions, makes_tokens=self._settings.makes_tokens, **common
            )
            manager.work(Component("sources", sources.run, sources.drain))
        manager.work(Component("pods", self._syncer.run, self._syncer.drain))
        manager.work(Component("targets", self._follow_targets))
        binder = Binder(self._views, self._cluster, recorder=self._recorder, **common)
        manager.work(Component("binder", binder.run, binder.drain))
        unelected = UnelectedPods(self._cluster, recorder=self._recorder, **common)
        manager.work(Component("unelected-pods", unelected.run, unelected.drain))

    def wire_services(self) -> None:
        """Add the components that reroute Services. Without them, nothing undoes what `uninstall` restores."""
        manager, common = self._program.manager, self._program.common()
        networks = self._settings.mode.pod_networks
        reroute = ServiceReroute(self._cluster, labels_global=bool(networks), **common)
        manager.work(Component("service-reroute", reroute.run, reroute.drain))
        endpoints = DelegateEndpoints(self._cluster, networks, recorder=self._recorder, **common)
        manager.work(Component("delegate-endpoints", endpoints.run, endpoints.drain))
        if self._settings.mode.exports_services:
            exports = MulticlusterServices(self._cluster, self._settings.name, **common)
            manager.work(Component("multicluster-services", exports.run, exports.drain))

    async def _follow_targets(self) -> None:
        """Follow the Targets, and run their virtual nodes, once the id of the cluster is known."""
        cluster, common, supervisor = self._cluster, self._program.common(), self._program.manager.supervisor
        cluster_id = await cluster.identify()
        nodes = VirtualNodes(cluster_id, cluster.client, informers=cluster.informers, **common)
        here = await own_address.towards((await cluster.client.credentials.access()).server)
        kubelet = self._kubelet(here)
        # Claims stay in a target that leaves: a Target that is deleted by mistake must not cost data.
        rules = (rule for rule in self._mode.rules.values() if rule.is_synced and not rule.lifecycle.outlives_users)
        kinds = [rule.resource for rule in rules]
        targets = Targets(
            self._registry,
            Source(cluster, self._settings.name, cluster_id),
            views=self._views,
            nodes=nodes,
            kubelet=kubelet,
            conditions=self._conditions,
            leaving=Leaving(cluster, cluster_id, kinds, clock=self._program.clock),
            connect=_connect,
            join=self._join,
            **common,
        )
        serving_nodes = supervisor.start("virtual-nodes", nodes.run)
        try:
            await targets.run()
        finally:
            nodes.drain()
            serving_nodes.cancel()

    def _join(self, name: str, client: Client, namespaces: frozenset[str] | None) -> Cluster:
        budgets = None if client is self._cluster.client else admiralty.target_budgets()
        return self._program.cluster(name, client, namespaces=namespaces, budgets=budgets)

    def _kubelet(self, here: str) -> NodeServers:
        """The kubelet API of the virtual nodes, at the address at which the API server reaches this process."""
        client, program = self._cluster.client, self._program
        certificate = SignedCertificate(client, node=f"hansa-{COMPONENT}", names=[here], clock=program.clock)
        return NodeServers(
            here,
            serving=Serving(client, certificate, clock=program.clock),
            access=NodeAccess(client, clock=program.clock),
            pods=LinkedPods(lambda: self._syncer.linked(UPPER)),
            supervisor=program.manager.supervisor,
            clock=program.clock,
            metrics=program.metrics,
        )


def _connect(credentials: Credentials) -> Client:
    return Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)


@contextlib.asynccontextmanager
async def _webhook(settings: AgentSettings, program: Program, client: Client) -> AsyncIterator[None]:
    """Serve the webhook, if it is wanted, and install its configuration."""
    if not settings.serves_webhook:
        yield
        return
    wanted = settings.webhook
    if wanted is None:
        here = await own_address.towards((await client.credentials.access()).server)
        wanted = WebhookSettings(host=here, port=0, name=admiralty_admission.CONFIGURATION_NAME)
    wanted = replace(wanted, is_installed=settings.installs and wanted.is_installed)
    mutations = admiralty_admission.mutations(settings.mode)
    async with admission.served(program, client, wanted, mutations, webhook=admiralty_admission.WEBHOOK_NAME):
        yield
