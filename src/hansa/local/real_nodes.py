"""The real nodes of one cluster, with the network that they live in and the door to it from this machine's loopback."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local import component, components, concurrently, nodes, ports, probe, process, readiness
from hansa.local.components import Site
from hansa.local.machines import dns, door, images, node, requirements
from hansa.local.machines.addresses import Networks
from hansa.local.machines.door import Place
from hansa.local.machines.fabric import Fabric
from hansa.local.machines.node import Credentials, Node
from hansa.local.machines.requirements import Tools
from hansa.local.pki import Pki
from hansa.local.process import Identity
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State

DOOR = "door"
# A control plane in a network namespace of its own can have the ports that everybody knows.
WELL_KNOWN = {components.APISERVER: 6443, components.CONTROLLERS: 10257, components.SCHEDULER: 10259}
DNS_RESOURCES = (
    resources.SERVICE_ACCOUNTS,
    resources.CLUSTER_ROLES,
    resources.CLUSTER_ROLE_BINDINGS,
    resources.CONFIG_MAPS,
    resources.DEPLOYMENTS,
    resources.SERVICES,
)
BINARIES = ("kubelet", "kube-proxy", *images.PROGRAMS)


def site(state: State, record: Record) -> Site:
    """Where the control plane of a cluster with real nodes listens."""
    networks = Networks(record.slot)
    netns = Fabric(state.root).host(record.spec.name, 0)
    return Site(address=str(networks.control_plane), ports=WELL_KNOWN, networks=networks, netns=netns)


def components_of(spec: ClusterSpec) -> list[str]:
    """The processes that real nodes add to a cluster."""
    return [DOOR, *(_component(index) for index in _indexes(spec))] if spec.is_networked else []


@dataclass(frozen=True, slots=True)
class RealNodes:
    """The real nodes of a cluster; callers hold the cluster's lock."""

    state: State
    record: Record
    binaries: Mapping[str, Path]
    image_cache: Path

    async def ensure_network(self) -> None:
        """Make the hosts of the control plane and of the nodes, or refuse if this machine can't."""
        requirements.prepare(self.state.root)
        spec = self.record.spec
        await self._fabric.ensure(spec.name, self.record.slot, is_joined=spec.join_pods, nodes=_indexes(spec))

    async def open_door(self) -> None:
        """Let this machine's loopback reach the API server."""
        inside = site(self.state, self.record)
        outer = Place("", ports.LOOPBACK, self.record.ports[components.APISERVER])
        inner = Place(inside.netns or "", inside.address, inside.ports[components.APISERVER])
        log = self._folder / "log" / f"{DOOR}.log"
        started = await component.ensure(
            self._identity(DOOR), door.command(outer, inner), current=self._running().get(DOOR), log=log
        )
        await component.serving(started, partial(probe.is_healthy, outer, "/readyz"), log=log)

    async def ensure(self, client: Client) -> None:
        """Start or repair every node, remove those that are too many, and install cluster DNS."""
        tools = requirements.prepare(self.state.root)
        builtin = await images.ensure(self.image_cache, self.binaries, busybox=tools.busybox)
        archives = (builtin, *(Path(image) for image in self.record.spec.images))
        for manifest in dns.manifests(Networks(self.record.slot).dns):
            await _apply(client, Object.of(manifest))
        wanted = [self._node(index, archives) for index in _indexes(self.record.spec)]
        await self._remove_surplus(client)
        await concurrently.run(self._start(client, one, tools) for one in wanted)
        await readiness.names_resolve(client)

    async def _start(self, client: Client, one: Node, tools: Tools) -> None:
        argv, current = node.prepare(one, tools), self._running().get(_component(one.index))
        log = node.log(one.folder, "node")
        if current is None:
            await nodes.release(client, [one.name])
        started = await component.ensure(
            self._identity(_component(one.index)), argv, current=current, log=log, netns=one.host
        )
        await component.outlives(started, readiness.nodes_are_alive(client, [one.name]), log=log)
        await component.outlives(started, readiness.nodes_are_ready(client, [one.name]), log=log)

    def _node(self, index: int, archives: tuple[Path, ...]) -> Node:
        spec, pki = self.record.spec, Pki(self._folder / "pki")
        name, server = _name(spec.name, index), site(self.state, self.record).server
        address = str(Networks(self.record.slot).host(index))
        pki.ensure_node(name, server, address=address, now=datetime.now(UTC))
        return Node(
            name=name,
            folder=self._folder / "nodes" / str(index),
            fabric=self._fabric,
            cluster=spec.name,
            slot=self.record.slot,
            index=index,
            credentials=Credentials(
                ca=pki.certificate("ca"),
                certificate=pki.certificate(f"kubelet-{name}"),
                key=pki.key(f"kubelet-{name}"),
                kubeconfig=pki.kubeconfig(f"node-{name}"),
                proxy_kubeconfig=pki.kubeconfig("kube-proxy"),
            ),
            binaries=self.binaries,
            images=archives,
        )

    async def _remove_surplus(self, client: Client) -> None:
        for index in set(_there(self._folder)) - set(_indexes(self.record.spec)):
            await remove_node(self.state, self.record.spec.name, index)
            await self._fabric.remove_host(self.record.spec.name, index)
            try:
                await client.delete(resources.NODES, _name(self.record.spec.name, index))
            except errors.NotFound:
                continue

    @property
    def _fabric(self) -> Fabric:
        return Fabric(self.state.root)

    @property
    def _folder(self) -> Path:
        return self.state.folder(self.record.spec.name)

    def _identity(self, name: str) -> Identity:
        return Identity(self.state.root, self.record.spec.name, name)

    def _running(self) -> dict[str, process.Process]:
        found = process.running(self.state.root)
        return {name: p for (cluster, name), p in found.items() if cluster == self.record.spec.name}


async def remove(state: State, cluster: str) -> None:
    """Remove all nodes of a cluster and its network, or what a crash left of them."""
    await concurrently.run(remove_node(state, cluster, index) for index in _there(state.folder(cluster)))
    await Fabric(state.root).remove(cluster)


async def remove_node(state: State, cluster: str, index: int) -> None:
    """End one node and remove all that it left."""
    running = process.running(state.root).get((cluster, _component(index)))
    if running is not None:
        await running.stop()
    await node.remove(state.folder(cluster) / "nodes" / str(index), Fabric(state.root).host(cluster, index))


def _there(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.glob("nodes/*")]


def _indexes(spec: ClusterSpec) -> range:
    return range(1, spec.real_nodes + 1)


def _component(index: int) -> str:
    return f"node-{index}"


def _name(cluster: str, index: int) -> str:
    return f"{cluster}-real-{index}"


async def _apply(client: Client, obj: Object) -> None:
    resource = next(r for r in DNS_RESOURCES if r.kind == obj.kind)
    await client.apply(resource, obj, field_manager="hansa-local", force=True)
