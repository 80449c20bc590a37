"""A process that serves virtual nodes, as tests need it: started, stopped and started again on real clusters."""

import contextlib
import datetime

import msgspec

from eventually import eventually
from hansa.engine import cluster as engine_cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.nodes import controller, lower_cluster
from hansa.nodes.heartbeat import Timing
from lower_things import container, pod
from machinery import QUICK, Machine

NODES, PODS, LEASES = resources.NODES, resources.PODS, resources.LEASES
PLAIN = {"cpu": "64", "memory": "512Gi", "pods": "220"}  # what the lower cluster has
AGENT = "hansa-virtual-nodes"  # how the process calls itself at the API servers
BRISK = Timing(renew=0.5, report=3.0, pause=0.5, first_facts=3.0)


@contextlib.asynccontextmanager
async def serving(upper, below, *settings, timing=BRISK):
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
    """What a test can reach of the process."""

    nodes: controller.VirtualNodes
    lower_cluster: lower_cluster.LowerCluster
    upper_id: str


class Audit:
    """The requests of the process that an API server noted, from a moment on."""

    def __init__(self, cluster):
        self._path = cluster.log("audit")
        self._offset, self._moment = self._path.stat().st_size, datetime.datetime.now(datetime.UTC)

    def requests(self):
        """Verb, resource and name of each, in order; watches are noted when they end."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            lines = [line for line in log.read().splitlines(keepends=True) if line.endswith(b"\n")]
        entries = [msgspec.json.decode(line) for line in lines]
        return [
            (entry["verb"], *_named(entry.get("objectRef", {})))
            for entry in entries
            if entry.get("userAgent") == AGENT and self._is_new(entry)
        ]

    def _is_new(self, entry):
        """The log is written a while after a request is answered."""
        return datetime.datetime.fromisoformat(entry["requestReceivedTimestamp"]) >= self._moment


def _named(ref):
    resource = ref.get("resource", "")
    return (f"{resource}/{ref['subresource']}" if "subresource" in ref else resource), ref.get("name", "")


async def gone(client, resource, one):
    """Wait until an object is not there any more."""

    async def is_gone():
        with contextlib.suppress(errors.NotFound):
            return (await client.get(resource, one.name, namespace=one.namespace)).uid != one.uid
        return True

    await eventually(is_gone)


async def get(client, name):
    """A node, or None."""
    try:
        return await client.get(NODES, name)
    except errors.NotFound:
        return None


def ready(one):
    """The condition Ready of a node."""
    found = [c for c in one.status.get("conditions", ()) if c["type"] == "Ready"]
    return found[0] if found else {}


async def told(client, name, *, within=30.0, **allocatable):
    """Wait until the node is ready and offers that."""
    wanted = {key.replace("gpu", "example.com/gpu"): value for key, value in allocatable.items()}

    async def tells():
        one = await get(client, name)
        assert one is not None, "there is no node"
        assert ready(one).get("status") == "True", ready(one)
        offered = one.status["allocatable"]
        assert {key: offered.get(key) for key in wanted} == wanted, offered
        return one

    return await eventually(tells, within=within)


def bound(name, on, **requests):
    """A pod on a lower node that asks for that."""
    return pod(name, on=on, phase="Pending", containers=[container(**requests)])


async def cordon(client, name, *, is_cordoned=True):
    """Let a node take no pods, or take them again."""
    await client.patch(NODES, name, {"spec": {"unschedulable": is_cordoned or None}})
