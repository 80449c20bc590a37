"""`hansa virtual-node`: wires virtual nodes, and the sync of pods bound to them to lower clusters."""

import contextlib
import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hansa.app.program import UPPER, Program, agent
from hansa.control.freshness import Unlisted
from hansa.control.informer import Scope
from hansa.control.manager import Component, Lead
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.kubelet.access import NodeAccess
from hansa.kubelet.certificates import Serving, Source
from hansa.kubelet.node_servers import NodeServers
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.signing import SignedCertificate
from hansa.modes import tensile
from hansa.modes.tensile_settings import Controllers, TensileSettings
from hansa.nodes import own_address
from hansa.nodes.controller import VirtualNodes
from hansa.nodes.lower_cluster import LowerCluster
from hansa.runtime import memory, tasks
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
FIRST_LISTS = 60.0  # seconds, after which the program is ready although a cluster is unreachable
Clusters = Mapping[str, Cluster]


async def run(settings: TensileSettings, *, metrics_address: str = "", election_namespace: str = "") -> None:
    """Serve virtual nodes until a signal ends the program."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:

        async def connected(name: str, source: CredentialSource) -> Cluster:
            access = await source.find()
            client = Client(access, user_agent=agent("virtual-node"), deadline=REQUEST_DEADLINE)
            return program.cluster(name, await stack.enter_async_context(client))

        clusters = {UPPER: await connected(UPPER, settings.upper)}
        for lower in settings.lowers:
            if lower.node.lower in clusters:
                raise HansaError(f'a lower cluster cannot be named "{UPPER}", the name of the upper cluster; rename it')
            clusters[lower.node.lower] = await connected(lower.node.lower, lower.source)
        pods = program.syncer(tensile.mode(settings), _registry(clusters, _down(settings)))
        linked = LinkedPods(lambda: pods.linked(UPPER))
        manager = program.manager
        manager.work(Component("pods", pods.run, pods.drain, ready=lambda: _first_lists(clusters)))
        manager.work(Component("virtual-nodes", lambda: _serve_nodes(settings, clusters, linked, program)))
        if Controllers.VOLUMES in settings.controllers:
            manager.work(Component("volumes", lambda: _sync_volumes(settings, clusters, program)))
        if metrics_address:
            program.serve_health(metrics_address)
        await manager.run(*_election(settings, election_namespace, clusters[UPPER], program))


def _down(settings: TensileSettings) -> list[Route]:
    """The routes of pods and the objects they refer to."""
    return [Route(UPPER, one.node.lower, one.link, frozenset({one.node.name})) for one in settings.lowers]


async def _sync_volumes(settings: TensileSettings, clusters: Clusters, program: Program) -> None:
    """Sync PersistentVolumes that are provisioned in lower clusters up."""
    routes = [Route(one.node.lower, UPPER, one.link) for one in settings.lowers]
    mode = tensile.volumes(await clusters[UPPER].identify())
    await program.syncer(mode, _registry(clusters, routes)).run()


def _registry(clusters: Clusters, routes: Iterable[Route]) -> ClusterRegistry:
    registry = ClusterRegistry()
    for cluster in clusters.values():
        registry.join(cluster)
    for route in routes:
        registry.link(route)
    return registry


async def _serve_nodes(settings: TensileSettings, clusters: Clusters, pods: LinkedPods, program: Program) -> None:
    """Run the virtual nodes and their kubelet API, once the id of the upper cluster is known."""
    upper, supervisor = clusters[UPPER], program.manager.supervisor
    upper_id = await upper.identify()
    here = await own_address.towards((await upper.client.credentials.access()).server)
    nodes = VirtualNodes(upper_id, upper.client, informers=upper.informers, **program.common())
    servers = NodeServers(
        here,
        serving=Serving(upper.client, _certificate(settings, here, upper, program), clock=program.clock),
        access=NodeAccess(upper.client, clock=program.clock),
        pods=pods,
        supervisor=supervisor,
        clock=program.clock,
        metrics=program.metrics,
    )
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(servers.close)
        for one in settings.lowers:
            lower = LowerCluster(clusters[one.node.lower])
            stack.push_async_callback(lower.close)
            stack.push_async_callback(tasks.cancel, supervisor.start("version", lower.run, cluster=one.node.lower))
            address, port = servers.add(one.node.name, address=one.node.internal_ip, port=one.node.port)
            nodes.add(replace(one.node, internal_ip=address, port=port), lower)
        await nodes.run()


def _certificate(settings: TensileSettings, here: str, upper: Cluster, program: Program) -> Source:
    """The serving certificate of the kubelet API."""
    if settings.serving is not None:
        return settings.serving
    nodes = [one.node for one in settings.lowers]
    addresses = {address for node in nodes for address in (here, node.internal_ip, node.external_ip) if address}
    return SignedCertificate(
        upper.client, node=nodes[0].name, names=addresses | {node.name for node in nodes}, clock=program.clock
    )


async def _first_lists(clusters: Clusters) -> None:
    """Wait for the first list of pods in each cluster, and exclude the objects made so far from garbage collection."""
    for cluster in clusters.values():
        async with cluster.informers.share(Scope(resources.PODS)) as pods:
            try:
                await pods.freshness.wait_synced(FIRST_LISTS)
            except Unlisted as error:
                log.warning("cluster not synced, continuing", extra={"cluster": cluster.name, "error": str(error)})
    memory.freeze()


def _election(settings: TensileSettings, namespace: str, upper: Cluster, program: Program) -> tuple[Lead, ...]:
    """The leader election of processes that serve the same virtual nodes, with --leader-elect."""
    if not namespace:
        return ()
    names = ",".join(sorted(lower.node.name for lower in settings.lowers))
    name = f"hansa-virtual-node-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    return (program.elect(name, upper, namespace=namespace),)
