"""`hansa vn-agent`: wires the kubelet API of super nodes for tenants."""

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path

from hansa.app.program import Program, agent
from hansa.control.informer import Informers, Scope
from hansa.control.manager import Component
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.kube import certificates
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.login import File, Login
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import Object
from hansa.kubelet.certificates import CertificateFiles, Source
from hansa.kubelet.server import Server
from hansa.kubelet.signing import SignedCertificate
from hansa.kubelet.tenants.agent import TenantAgent
from hansa.kubelet.tenants.below import ApiServer, Below, Kubelet
from hansa.kubelet.tenants.directory import Directory
from hansa.kubelet.tenants.sessions import Sessions
from hansa.kubelet.tenants.tenant import Tenant
from hansa.kubelet.tenants.tls import TenantTls
from hansa.nodes import own_address
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.api import BadVirtualCluster

COMPONENT = "vn-agent"
FIRST_LIST_SECONDS = 60.0  # after which the program is ready although the meta cluster is unreachable


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """The kubelet of the node, and the client certificate by which it knows the vn-agent."""

    host: str
    port: int
    certificate: Path
    key: Path
    ca: Path
    server_name: str = ""  # in its serving certificate, if it is not the host

    def credentials(self) -> Credentials:
        """Credentials that read the files again when they change."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return Credentials(
            lambda: Login(
                server=f"https://{host}:{self.port}",
                origin="--kubelet-client-certificate",
                server_origin="--kubelet-host",
                ca=File(self.ca, "--kubelet-certificate-authority"),
                server_name=self.server_name,
                certificate=File(self.certificate, "--kubelet-client-certificate"),
                key=File(self.key, "--kubelet-client-key"),
            )
        )


@dataclass(frozen=True, slots=True)
class VnAgentSettings:
    """The settings of vn-agent. Without `meta`, VirtualClusters are in the super cluster.

    Without `kubelet`, the API server of the super cluster is called.
    """

    super_cluster: CredentialSource
    meta: CredentialSource | None = None
    kubelet: KubeletSettings | None = None
    serving: CertificateFiles | None = None
    node: str = ""  # the only node whose pods are served
    address: str = ""  # to listen on; all if it is empty
    names: tuple[str, ...] = ()  # further ones of the signed certificate
    port: int = 10550
    connections: int = 100  # of one tenant
    bandwidth: float = 0.0  # bytes per second of one tenant
    metrics_address: str = ""


async def run(settings: VnAgentSettings) -> None:
    """Serve tenants until a signal ends the program."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:
        clients = _Clients(settings, stack, program)
        meta = program.informers("meta", await clients.meta())
        below, source = await clients.below(), settings.serving or await _signed(settings, clients, program)
        listening = stack.enter_context(contextlib.closing(_listening(settings)))
        agents = _VnAgent(settings, program, meta, below, source)
        program.manager.work(Component(COMPONENT, lambda: agents.serve(listening), ready=agents.ready))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await program.manager.run()


class _Clients:
    """The clients that the settings need. With a kubelet and a serving certificate, none is of the super cluster."""

    def __init__(self, settings: VnAgentSettings, stack: contextlib.AsyncExitStack, program: Program) -> None:
        self._settings, self._stack, self._clock = settings, stack, program.clock
        self._super: Client | None = None

    async def super_cluster(self) -> Client:
        if self._super is None:
            self._super = await self._connected(await self._settings.super_cluster.find())
        return self._super

    async def meta(self) -> Client:
        meta = self._settings.meta
        return await self.super_cluster() if meta is None else await self._connected(await meta.find())

    async def below(self) -> Below:
        kubelet = self._settings.kubelet
        if kubelet is None:
            return ApiServer(await self.super_cluster(), self._settings.node)
        return Kubelet(await self._connected(kubelet.credentials()), clock=self._clock)

    async def _connected(self, credentials: Credentials) -> Client:
        client = Client(credentials, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE)
        return await self._stack.enter_async_context(client)


@dataclass(frozen=True, slots=True)
class _VnAgent:
    settings: VnAgentSettings
    program: Program
    meta: Informers
    below: Below
    source: Source

    async def serve(self, listening: socket.socket) -> None:
        """Serve until cancelled."""
        metrics, clock = self.program.metrics, self.program.clock
        sessions = Sessions(most=self.settings.connections, rate=self.settings.bandwidth, clock=clock)
        calls = metrics.counter(
            "hansa_vn_agent_calls_total", "Calls of tenants to vn-agent.", labels=["cluster", "action", "answer"]
        )
        connections = metrics.gauge(
            "hansa_vn_agent_connections", "Open connections of tenants to vn-agent.", labels=["cluster"]
        )

        def gone(key: str) -> None:
            sessions.end(key)
            metrics.forget("cluster", key)

        async with contextlib.AsyncExitStack() as stack:
            vcs = await stack.enter_async_context(self.meta.share(Scope(api.VIRTUAL_CLUSTERS)))
            directory = stack.enter_context(contextlib.closing(Directory(vcs, tenant_of, gone=gone, clock=clock)))
            stack.callback(connections.read(sessions.counts))
            tenants, tls = TenantAgent(directory, self.below, sessions, calls), TenantTls(self.source, directory)
            server = Server(
                COMPONENT,
                listening,
                tls,
                tenants.handle,
                distrusted=tenants.distrusted,
                admit=tenants.admit,
                most=lambda: sessions.most(directory.count),
            )
            await server.run()

    async def ready(self) -> None:
        """Wait for the first list of VirtualClusters."""
        async with self.meta.share(Scope(api.VIRTUAL_CLUSTERS)) as vcs:
            await vcs.freshness.wait_synced(FIRST_LIST_SECONDS)


def tenant_of(vc: Object) -> Tenant | None:
    """The tenant of a VirtualCluster; None if its API server has no recorded certificate, or it is being deleted."""
    try:
        found = api.virtual_cluster(vc)
        recorded = found.status.kubelet_client
        ca = certificates.bundle(recorded.ca.encode())
    except (BadVirtualCluster, ValueError):
        return None
    if found.is_deleting or not recorded.hashes:
        return None
    return Tenant(found.root, found.namespace, found.name, recorded.hashes, ca)


async def _signed(settings: VnAgentSettings, clients: _Clients, program: Program) -> Source:
    """A certificate of the super cluster's signer for the addresses at which tenants' API servers call."""
    above = await clients.super_cluster()
    here = settings.address or await own_address.towards((await above.credentials.access()).server)
    names = {here, *settings.names, socket.gethostname(), *([settings.node] if settings.node else [])}
    return SignedCertificate(above, node=settings.node or COMPONENT, names=names, clock=program.clock)


def _listening(settings: VnAgentSettings) -> socket.socket:
    where = settings.address or "::"
    family = socket.AF_INET6 if ":" in where else socket.AF_INET
    try:
        return socket.create_server((where, settings.port), family=family, dualstack_ipv6=not settings.address)
    except OSError as error:
        raise HansaError(
            f"cannot listen on {where} port {settings.port} ({error.strerror or error}): set --address or --port"
        ) from None
