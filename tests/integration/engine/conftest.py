"""One upper and two lower clusters for all tests of the engine, and an engine for each test."""

import asyncio
import contextlib
import datetime
import secrets
import signal

import pytest

import engine_lab as lab
from hansa.engine.registry import Route
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.programs import components

NODES = {"low1": "vn1", "low2": "vn2"}


@pytest.fixture(scope="package")
async def league(fleet):
    """The clusters by name: `up`, `low1`, `low2`. The lower ones have kwok nodes, all have audit logs."""
    shape = NodeShape(pods="1000")
    lowers = [ClusterSpec(name, nodes=2, shape=shape, lift_limits=True, audit=True) for name in NODES]
    made = await fleet.up([ClusterSpec("up", lift_limits=True, audit=True), *lowers])
    yield {cluster.name: cluster for cluster in made}
    await fleet.down([cluster.name for cluster in made])


@pytest.fixture(scope="package")
async def clients(league):
    """Clients of the tests, by cluster."""
    async with contextlib.AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(one.client("test")) for name, one in league.items()}
        for node in NODES.values():
            await clients["up"].create(resources.NODES, lab.virtual_node(node))
        beating = asyncio.create_task(_beat(clients["up"]))
        yield clients
        beating.cancel()


async def _beat(client):
    """Renew the leases of the virtual nodes as a kubelet would, for the node controller."""
    while True:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        for node in NODES.values():
            spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now}
            metadata = {"name": node, "namespace": "kube-node-lease"}
            lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            try:
                await client.patch(resources.LEASES, node, {"spec": spec}, namespace="kube-node-lease")
            except errors.NotFound:
                await client.create(resources.LEASES, Object.of(lease))
        await asyncio.sleep(10)


@pytest.fixture
async def home(clients):
    """A fresh namespace of the upper cluster."""
    name = f"home-{secrets.token_hex(3)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await clients["up"].create(resources.NAMESPACES, Object.of(namespace))
    yield name
    with contextlib.suppress(errors.NotFound):
        await clients["up"].delete(resources.NAMESPACES, name)


@pytest.fixture
def start_engine(league):
    """Makes engines over the three clusters: `async with start_engine() as engine`."""

    @contextlib.asynccontextmanager
    async def start(*, lowers=tuple(NODES), agent="hansa-engine", **options):
        async with contextlib.AsyncExitStack() as stack:
            clients = {name: await stack.enter_async_context(league[name].client(agent)) for name in ("up", *lowers)}
            engine = await stack.enter_async_context(lab.Engine(**options))
            for name, client in clients.items():
                engine.join(name, client)
            for name in lowers:
                engine.registry.link(Route("up", name, nodes=frozenset({NODES[name]})))
            yield engine

    return start


@pytest.fixture
async def engine(start_engine):
    """An engine that runs during the test."""
    async with start_engine() as engine:
        yield engine


class See:
    """Reads of one cluster, as conditions for `eventually`."""

    def __init__(self, client):
        self.client = client

    async def find(self, resource, name, namespace):
        """An object, or None."""
        try:
            return await self.client.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    def has(self, resource, name, namespace, is_so=lambda _: True):
        """A condition for `eventually`: the object exists and matches."""

        async def look():
            obj = await self.find(resource, name, namespace)
            return obj if obj is not None and is_so(obj) else None

        return look

    def lacks(self, resource, name, namespace):
        """A condition for `eventually`: the object does not exist."""

        async def look():
            return await self.find(resource, name, namespace) is None

        return look

    def event(self, name, namespace, reason):
        """A condition for `eventually`: the Event about an object with that reason."""

        async def look():
            page = await self.client.list(
                resources.EVENTS, namespace=namespace, fields=f"involvedObject.name={name},reason={reason}"
            )
            return page.items[0] if page.items else None

        return look


@pytest.fixture
def see(clients):
    """Reads of every cluster: `see["up"]`."""
    return {name: See(client) for name, client in clients.items()}


@pytest.fixture
def stopped(league):
    """Freezes the API server of a cluster, until the end of the test at the latest."""
    held = []

    def stop(name):
        process = league[name].process(components.APISERVER)
        process.signal(signal.SIGSTOP)
        held.append(process)
        return process

    yield stop
    for process in held:
        process.signal(signal.SIGCONT)
