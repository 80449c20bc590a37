"""The controller of virtual nodes in the process of a test, on real clusters, and waits for its nodes."""

import contextlib
import datetime
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from eventually import eventually
from hansa.engine import cluster as engine_cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.local import Cluster
from hansa.nodes import controller, lower_cluster
from hansa.nodes.heartbeat import Timing
from hansa.nodes.settings import NodeSettings
from lower_things import container, pod
from machinery import QUICK, Machine

NODES, PODS, LEASES = resources.NODES, resources.PODS, resources.LEASES
PLAIN = {"cpu": "64", "memory": "512Gi", "pods": "220"}  # the capacity of the lower cluster
AGENT = "hansa-virtual-nodes"  # the user agent in audit logs
BRISK = Timing(renew=0.5, report=3.0, pause=0.5, first_sync=3.0)


@contextlib.asynccontextmanager
async def serving(
    upper: Cluster, below: Cluster, *settings: NodeSettings, timing: Timing = BRISK
) -> AsyncIterator["Served"]:
    """Virtual nodes of one upper cluster over one lower cluster, for as long as the block lasts."""
    async with (
        Machine() as machine,
        Client(kubeconfig.from_files(upper.kubeconfig), user_agent=AGENT, deadline=10) as client,
        Client(kubeconfig.from_files(below.kubeconfig), user_agent=AGENT, deadline=10) as lower_client,
    ):
        member = engine_cluster.Cluster(
            below.name, lower_client, supervisor=machine.supervisor, watch_patience=QUICK, **machine.injected()
        )
        informers = machine.informers(upper.name, client, watch_patience=QUICK)
        upper_id = (await client.get(resources.NAMESPACES, "kube-system")).uid
        nodes = controller.VirtualNodes(upper_id, client, informers=informers, timing=timing, **machine.injected())
        below_it = lower_cluster.LowerCluster(member)
        machine.supervisor.start("version", below_it.run)
        for one in settings:
            nodes.add(one, below_it)
        running = machine.supervisor.start("virtual nodes", nodes.run)
        try:
            yield Served(nodes, below_it, upper_id)
            nodes.drain()
            await running
        finally:
            await below_it.close()
            await member.close()
            await informers.close()


class Served(msgspec.Struct):
    """The running controller, and the lower cluster that its nodes represent."""

    nodes: controller.VirtualNodes
    lower_cluster: lower_cluster.LowerCluster
    upper_id: str


class Audit:
    """The requests of the controller in the audit log of a cluster, from the construction on."""

    def __init__(self, cluster: Cluster) -> None:
        self._path = cluster.log("audit")
        self._offset, self._moment = self._path.stat().st_size, datetime.datetime.now(datetime.UTC)

    def requests(self) -> list[tuple[str, str, str]]:
        """Verb, resource and name of each, in order; a watch is logged when it ends."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            lines = [line for line in log.read().splitlines(keepends=True) if line.endswith(b"\n")]
        entries = [msgspec.json.decode(line) for line in lines]
        return [
            (entry["verb"], *_named(entry.get("objectRef", {})))
            for entry in entries
            if entry.get("userAgent") == AGENT and self._is_new(entry)
        ]

    def _is_new(self, entry: Mapping[str, Any]) -> bool:
        """The log is written a while after the response, so an old request may come behind the offset."""
        return datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"]) >= self._moment


def _named(ref: Mapping[str, str]) -> tuple[str, str]:
    resource = ref.get("resource", "")
    return (f"{resource}/{ref['subresource']}" if "subresource" in ref else resource), ref.get("name", "")


async def gone(client: Client, resource: Resource, one: Object) -> None:
    """Wait until an object is deleted."""

    async def is_gone() -> bool:
        with contextlib.suppress(errors.NotFound):
            return (await client.get(resource, one.name, namespace=one.namespace)).uid != one.uid
        return True

    await eventually(is_gone)


async def get(client: Client, name: str) -> Object | None:
    """A node, or None."""
    try:
        return await client.get(NODES, name)
    except errors.NotFound:
        return None


def ready(one: Object) -> dict[str, Any]:
    """The condition Ready of a node; empty if it has none."""
    found = [c for c in one.status.get("conditions", ()) if c["type"] == "Ready"]
    return found[0] if found else {}


async def node_offers(client: Client, name: str, *, within: float = 60.0, **allocatable: str | None) -> Object:
    """Wait until a node is Ready with these allocatable resources; the node."""
    wanted = {key.replace("gpu", "example.com/gpu"): value for key, value in allocatable.items()}

    async def look() -> Object:
        one = await get(client, name)
        assert one is not None, "there is no node"
        assert ready(one).get("status") == "True", ready(one)
        offered = one.status["allocatable"]
        assert {key: offered.get(key) for key in wanted} == wanted, offered
        return one

    return await eventually(look, within=within)


def bound(name: str, on: str, **requests: Any) -> Object:
    """A pod on a lower node with these resource requests."""
    return pod(name, on=on, phase="Pending", containers=[container(**requests)])


async def cordon(client: Client, name: str, *, is_cordoned: bool = True) -> None:
    """Cordon a node, or uncordon it."""
    await client.patch(NODES, name, {"spec": {"unschedulable": is_cordoned or None}})
