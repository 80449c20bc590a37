"""Starts, repairs and removes the real nodes of one cluster, their network, and the relay from loopback to it.

A relay on this machine's loopback forwards to the API server, which listens in a network namespace. Files of a single
node are left to `node`, addresses to `addresses`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local.control_plane import readiness
from hansa.local.control_plane.command_lines import Site
from hansa.local.control_plane.pki import Pki
from hansa.local.machines import dns, images, kwok_nodes, node, requirements
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.node import Node, NodeCredentials
from hansa.local.machines.requirements import Tools
from hansa.local.spec import ClusterSpec
from hansa.local.state import Record, State
from hansa.programs import components, parallel, ports, probe, process, relay, starting
from hansa.programs.process import Identity
from hansa.programs.relay import NetnsAddress

RELAY = "relay"
# A control plane in its own network namespace can use the default ports of Kubernetes.
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
    """The addresses of the control plane of a cluster with real nodes."""
    networks = Networks(record.slot)
    netns = HostNetwork(state.root).host(record.spec.name, 0)
    return Site(address=str(networks.control_plane), ports=WELL_KNOWN, networks=networks, netns=netns)


def components_of(spec: ClusterSpec) -> list[str]:
    """The components that real nodes add to a cluster."""
    return [RELAY, *(_component(index) for index in _indexes(spec))] if spec.is_networked else []


@dataclass(frozen=True, slots=True)
class RealNodes:
    """The real nodes of a cluster; callers hold the cluster's lock."""

    state: State
    record: Record
    binaries: Mapping[str, Path]
    image_cache: Path

    async def ensure_network(self) -> None:
        """Create the hosts of the control plane and the nodes; refuse if this machine lacks a requirement."""
        requirements.prepare(self.state.root)
        spec = self.record.spec
        await self._network.ensure(spec.name, self.record.slot, is_joined=spec.join_pods, nodes=_indexes(spec))

    async def start_relay(self) -> None:
        """Start the relay from this machine's loopback to the API server."""
        inside = site(self.state, self.record)
        outer = NetnsAddress("", ports.LOOPBACK, self.record.ports[components.APISERVER])
        inner = NetnsAddress(inside.netns or "", inside.address, inside.ports[components.APISERVER])
        log = self._folder / "log" / f"{RELAY}.log"
        started = await starting.ensure(
            self._identity(RELAY), relay.command(outer, inner), current=self._running().get(RELAY), log=log
        )
        await starting.wait_until_serving(started, partial(probe.is_healthy, outer, "/readyz"), log=log)

    async def ensure(self, client: Client) -> None:
        """Start or repair all nodes, remove surplus nodes, and install cluster DNS."""
        tools = requirements.prepare(self.state.root)
        builtin = await images.ensure(self.image_cache, self.binaries, busybox=tools.busybox)
        archives = (builtin, *(Path(image) for image in self.record.spec.images))
        for manifest in dns.manifests(Networks(self.record.slot).dns):
            await _apply(client, Object.of(manifest))
        wanted = [self._node(index, archives) for index in _indexes(self.record.spec)]
        await self._remove_surplus(client)
        await parallel.run(self._start(client, one, tools) for one in wanted)
        await readiness.dns_is_available(client)

    async def _start(self, client: Client, one: Node, tools: Tools) -> None:
        argv, current = node.prepare(one, tools), self._running().get(_component(one.index))
        log = node.log(one.folder, "node")
        if current is None:
            await kwok_nodes.delete_leases(client, [one.name])
        started = await starting.ensure(
            self._identity(_component(one.index)), argv, current=current, log=log, netns=one.host
        )
        await starting.while_running(started, readiness.nodes_have_leases(client, [one.name]), log=log)
        await starting.while_running(started, readiness.nodes_are_ready(client, [one.name]), log=log)

    def _node(self, index: int, archives: tuple[Path, ...]) -> Node:
        spec, pki = self.record.spec, Pki(self._folder / "pki")
        name, server = _name(spec.name, index), site(self.state, self.record).server
        address = str(Networks(self.record.slot).host(index))
        pki.ensure_node(name, server, address=address, now=datetime.now(UTC))
        return Node(
            name=name,
            folder=self._folder / "nodes" / str(index),
            network=self._network,
            cluster=spec.name,
            slot=self.record.slot,
            index=index,
            credentials=NodeCredentials(
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
        for index in set(_existing(self._folder)) - set(_indexes(self.record.spec)):
            await remove_node(self.state, self.record.spec.name, index)
            await self._network.remove_host(self.record.spec.name, index)
            try:
                await client.delete(resources.NODES, _name(self.record.spec.name, index))
            except errors.NotFound:
                continue

    @property
    def _network(self) -> HostNetwork:
        return HostNetwork(self.state.root)

    @property
    def _folder(self) -> Path:
        return self.state.folder(self.record.spec.name)

    def _identity(self, name: str) -> Identity:
        return Identity(self.state.root, self.record.spec.name, name)

    def _running(self) -> dict[str, process.Process]:
        found = process.running(self.state.root)
        return {name: p for (cluster, name), p in found.items() if cluster == self.record.spec.name}


async def remove(state: State, cluster: str) -> None:
    """Remove all nodes of a cluster and its network, also after a crash."""
    await parallel.run(remove_node(state, cluster, index) for index in _existing(state.folder(cluster)))
    await HostNetwork(state.root).remove(cluster)


async def remove_node(state: State, cluster: str, index: int) -> None:
    """Stop one node and remove its files and control groups."""
    running = process.running(state.root).get((cluster, _component(index)))
    if running is not None:
        await running.stop()
    await node.remove(state.folder(cluster) / "nodes" / str(index), HostNetwork(state.root).host(cluster, index))


def _existing(folder: Path) -> list[int]:
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
