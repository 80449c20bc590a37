"""Pods of many tenants through one syncer, beside the same pods made directly in the super cluster, in the same run.

HANSA_BENCH_TENANTS and HANSA_BENCH_TENANT_PODS make it smaller. Tenants are real control planes by the manager.
"""

import asyncio
import contextlib
import os
import statistics
import time
from dataclasses import dataclass, field

import pytest

import programs
from eventually import eventually
from figures import figure
from hansa.kube import resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.tenancy import api
from hansa.tenancy.syncing.credentials import EncodedKubeconfig, TenantCredentials
from programs import Kubectl

TENANTS = int(os.environ.get("HANSA_BENCH_TENANTS", "20"))
PODS = int(os.environ.get("HANSA_BENCH_TENANT_PODS", "60"))
GREEDY, GREEDY_PODS, REGULAR_PODS = max(1, TENANTS // 4), PODS * 10 // 3, 5
CREATORS = 4  # requests in flight of each tenant's user
MOST_BEHIND, LEAST_RATE, LEAST_RATE_LIFTED, MOST_UNFAIR = 2.0, 0.9, 0.4, 1.5
MOST_CPU, MOST_KIB = 6.0, 12.0  # seconds for 1,000 pods; a pod
MOST_CREATION = 6.0  # seconds, p50
STARTING = 900.0
WARM = "warm"  # the namespace of the first pods, which stay


@dataclass
class Place:
    """A namespace in which pods are made, and who makes them."""

    client: Client
    namespace: str
    latencies: dict[str, float] = field(default_factory=dict)


@dataclass
class Bench:
    """The super cluster, its tenants and the syncer."""

    super: Client
    tenants: list[Client]
    syncer: programs.Hansa
    is_lifted: bool

    def cpu(self):
        """Seconds of CPU that the syncer has used."""
        with open(f"/proc/{self.syncer.pid}/stat") as file:  # noqa: PTH123
            fields = file.read().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self):
        """KiB that the syncer holds."""
        with open(f"/proc/{self.syncer.pid}/status") as file:  # noqa: PTH123
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


@pytest.fixture(scope="module", params=[False, True], ids=["stock limits", "limits lifted"])
async def bench(request, fleet, kubectl, tmp_path_factory):
    name = "super-lifted" if request.param else "super-stock"
    shape = NodeShape(cpu="100k", memory="1000Ti", pods="100k")
    [made] = await fleet.up([ClusterSpec(name, nodes=4, shape=shape, lift_limits=request.param)])
    folder, kubeconfig = tmp_path_factory.mktemp(name), str(made.kubeconfig)
    log = folder / "log"
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(made.client("hansa-bench"))
        # The super cluster's etcd doesn't wait for the disk either.
        manager = ("vc-manager", "--kubeconfig", kubeconfig, "--state", str(folder / "tenants"), "--etcd-fast")
        await stack.enter_async_context(programs.hansa(*manager, log=log))
        tenants = await _tenants(client, Kubectl(kubectl, made.kubeconfig), stack)
        syncer = ("vc-syncer", "--super-master-kubeconfig", kubeconfig, "--log-level", "warn")
        running = await stack.enter_async_context(programs.hansa(*syncer, log=log))
        await eventually(lambda: _are_synced(client), within=STARTING, every=1.0)
        yield Bench(client, tenants, running, request.param)
        await _remove(client)
    await fleet.down([name])


async def _tenants(client, kubectl, stack):
    """As many control planes as asked for, one after the other: how long each takes is a figure as well."""
    await eventually(lambda: _is_served(client), within=60)
    seconds, tenants = [], []
    for number in range(TENANTS):
        name, began = f"vc-{number}", time.perf_counter()
        spec = {"clusterVersionName": "cv-sample-np"}
        wanted = {"apiVersion": "tenancy.x-k8s.io/v1alpha1", "kind": "VirtualCluster", "metadata": {"name": name}}
        await client.create(api.VIRTUAL_CLUSTERS, Object.of(wanted | {"spec": spec}), namespace="default")
        await kubectl("wait", f"vc/{name}", "--for=jsonpath={.status.phase}=Running", "--timeout=300s")
        root = api.virtual_cluster(await client.get(api.VIRTUAL_CLUSTERS, name, namespace="default")).root
        secret = await client.get(resources.SECRETS, "admin-kubeconfig", namespace=root)
        access = TenantCredentials(EncodedKubeconfig(secret.get("data")["admin-kubeconfig"], name))
        tenant = await stack.enter_async_context(Client(access, user_agent="hansa-bench"))
        await tenant.list(resources.NAMESPACES)
        seconds.append(time.perf_counter() - began)
        tenants.append(tenant)
    print(f"\n{TENANTS} tenants, from the VirtualCluster to a list of namespaces: worst {max(seconds):.1f} s")
    figure("a tenant is there, p50, s", statistics.median(seconds), most=MOST_CREATION)
    return tenants


async def _is_served(client):
    try:
        await client.get(api.CLUSTER_VERSIONS, "cv-sample-np")
    except Exception as error:
        raise AssertionError(str(error)) from None
    return True


async def _are_synced(client):
    page = await client.list(api.VIRTUAL_CLUSTERS)
    conditions = [api.virtual_cluster(vc).status.conditions for vc in page.items]
    return all(any((one.type, one.status) == ("Synced", "True") for one in found) for found in conditions)


async def _remove(client):
    for vc in (await client.list(api.VIRTUAL_CLUSTERS)).items:
        await client.delete(api.VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace)

    async def is_empty():
        return not (await client.list(api.VIRTUAL_CLUSTERS)).items

    await eventually(is_empty, within=STARTING, every=1.0)


async def test_many_tenants_beside_the_same_pods_made_directly(bench, request):
    places = await _places(bench, WARM)
    await asyncio.gather(*(_burst(place, 3) for place in places))
    direct = [Place(bench.super, f"direct-{number}") for number in range(TENANTS)]
    await _make_namespaces(direct)
    plain = await _all(direct, PODS)
    await _clear(direct)
    places, cpu, rss = await _places(bench, "bench"), bench.cpu(), bench.rss()
    ours = await _all(places, PODS)
    count = TENANTS * PODS
    kib, used = (bench.rss() - rss) / count, bench.cpu() - cpu
    print(f"\n{request.node.callspec.id}: {count} pods, {TENANTS} tenants")
    for what, run in (("direct", plain), ("tenants", ours)):
        print(f"  {what:<8} {run.rate:.0f} pods/s, p50 {run.at(0.5):.2f} s, p99 {run.at(0.99):.2f} s")
    figure(
        "pods a second, of direct", ours.rate / plain.rate, least=LEAST_RATE_LIFTED if bench.is_lifted else LEAST_RATE
    )
    if not bench.is_lifted:
        figure("p99 behind direct, s", ours.at(0.99) - plain.at(0.99), most=MOST_BEHIND)
    figure("CPU of the syncer for 1,000 pods, s", 1000 * used / count, most=MOST_CPU)
    figure("memory of the syncer for a pod, KiB", kib, most=MOST_KIB)
    await _clear(places)


async def test_regular_tenants_beside_greedy_ones(bench, request):
    places = await _places(bench, "fair")
    greedy, regular = places[:GREEDY], places[GREEDY:]
    await eventually(lambda: _is_quiet(bench.super), within=300, every=1.0)
    alone = await _sequential(regular, "alone")
    flood = [asyncio.create_task(_burst(place, GREEDY_PODS)) for place in greedy]
    beside = await _sequential(regular, "beside")
    is_over = all(task.done() for task in flood)
    await asyncio.gather(*flood)
    print(f"\n{request.node.callspec.id}: {GREEDY} greedy x {GREEDY_PODS}, {len(regular)} regular x {REGULAR_PODS}")
    print(f"  regular p99: alone {_at(alone, 0.99):.2f} s, beside the greedy {_at(beside, 0.99):.2f} s", end="")
    print("; the greedy were done before" if is_over else "")
    figure("p99 of the regular beside the greedy, times alone", _at(beside, 0.99) / _at(alone, 0.99), most=MOST_UNFAIR)
    await _clear(places)


@dataclass
class Run:
    """How long each pod took to be Ready, and all of them."""

    latencies: list[float]
    seconds: float

    @property
    def rate(self):
        return len(self.latencies) / self.seconds

    def at(self, part):
        return _at(self.latencies, part)


def _at(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


async def _all(places, count):
    began = time.perf_counter()
    await asyncio.gather(*(_burst(place, count) for place in places))
    return Run([one for place in places for one in place.latencies.values()], time.perf_counter() - began)


async def _sequential(places, prefix):
    async def one_after_the_other(place):
        for number in range(REGULAR_PODS):
            await _burst(place, 1, prefix=f"{prefix}-{number}-")

    for place in places:
        place.latencies = {}
    await asyncio.gather(*(one_after_the_other(place) for place in places))
    return [one for place in places for one in place.latencies.values()]


async def _burst(place, count, *, prefix="p-"):
    """Make pods and wait until all are Ready, by our own clock."""
    names, began = [f"{prefix}{number}" for number in range(count)], {}

    async def create(some):
        for name in some:
            began[name] = time.perf_counter()
            await place.client.create(resources.PODS, _pod(name), namespace=place.namespace)

    async with asyncio.timeout(1800), asyncio.TaskGroup() as group:
        ready = group.create_task(_ready(place, set(names), began))
        for creator in range(CREATORS):
            group.create_task(create(names[creator::CREATORS]))
        await ready


async def _ready(place, missing, began):
    changes = watching.watch(place.client, resources.PODS, namespace=place.namespace)
    async with contextlib.aclosing(changes):
        async for change in changes:
            if isinstance(change, watching.Added | watching.Modified) and change.obj.name in missing:
                conditions = change.obj.status.get("conditions", ())
                if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
                    missing.discard(change.obj.name)
                    place.latencies[change.obj.name] = time.perf_counter() - began[change.obj.name]
            if not missing:
                return


def _pod(name):
    spec = {"containers": [{"name": "main", "image": "example.com/app:1"}], "terminationGracePeriodSeconds": 0}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


async def _places(bench, namespace):
    places = [Place(tenant, namespace) for tenant in bench.tenants]
    await _make_namespaces(places)
    return places


async def _is_quiet(client):
    """Whether the pods of what was measured before are gone, and alone means alone."""
    return all(pod.namespace.endswith(f"-{WARM}") for pod in (await client.list(resources.PODS)).items)


async def _make_namespaces(places):
    async def make(place):
        wanted = Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}})
        await place.client.create(resources.NAMESPACES, wanted)

        async def has_account():
            return (await place.client.list(resources.SERVICE_ACCOUNTS, namespace=place.namespace)).items

        await eventually(has_account, within=60)

    await asyncio.gather(*(make(place) for place in places))


async def _clear(places):
    async def clear(place):
        await place.client.delete(resources.NAMESPACES, place.namespace)

        async def is_gone():
            return place.namespace not in {one.name for one in (await place.client.list(resources.NAMESPACES)).items}

        await eventually(is_gone, within=600, every=1.0)

    await asyncio.gather(*(clear(place) for place in places))
