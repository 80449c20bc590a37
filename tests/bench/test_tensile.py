"""Pods through one virtual node, beside the same on a plain cluster in the same run. All rate limits are lifted."""

import asyncio
import contextlib
import os
import statistics
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from eventually import eventually
from figures import figure
from hansa.kube import resources, watching
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.programs import ports, process
from league import League, deployment, member, pod

SIZES = [int(text) for text in os.environ.get("HANSA_BENCH_PODS", "100,1000").split(",")]
MANY = int(os.environ.get("HANSA_BENCH_MANY", "10000"))
CHUNK = min(MANY, 1000)  # pods of a Deployment: the work of its controller grows with the square of them, ours must not
ROUNDS = 3  # of each side in turn: the machine is a third faster in one minute than in the next
HANSA = "hansa"
WRITES = {"create", "update", "patch", "delete"}
HEARTBEATS = {"nodes", "leases"}  # they cost by the hour, not by the pod
LEAST_RATE, MOST_WRITES, MOST_CPU_MS, MOST_DELETION = 0.55, 6.0, 6.0, 2.0
MOST_LATENCY_MS, MOST_SPREAD, MOST_RSS_MB, MOST_RESTART = 30.0, 0.20, 200.0, 10.0
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="module")
async def bench(fleet, kubectl, tmp_path_factory):
    """A plain cluster, an upper and a lower one of the same size, and the program."""
    shape = NodeShape(cpu="100k", memory="1000Ti", pods="100k")
    wishes = [
        ClusterSpec(name, nodes=0 if name == "upper" else 4, shape=shape, audit=True, lift_limits=True, flags=FLUSH)
        for name in ("plain", "upper", "lower")
    ]
    plain, upper, lower = [member(made, kubectl) for made in await fleet.up(wishes)]
    folder = tmp_path_factory.mktemp("bench")
    port = ports.choose(1, taken=(), seed=str(folder))[0]
    league = League(upper, {"lower": lower}, folder, port=port)
    await league.start("--log-level", "warn")
    await league.ready()
    async with contextlib.AsyncExitStack() as stack:
        clients = {
            one.name: await stack.enter_async_context(one.cluster.client("hansa-bench"))
            for one in (plain, upper, lower)
        }
        yield Bench(league, clients, fleet.state.root)
    await league.stop()


@dataclass
class Bench:
    league: League
    clients: dict
    root: Path  # the clusters' state

    @property
    def pid(self):
        return self.league.program.pid

    def cpu(self):
        """Seconds of CPU that the program has used."""
        return cpu(self.pid)

    def cpus(self):
        """Seconds of CPU that each process has used, by its name: idle clusters use little."""
        used = {HANSA: self.cpu()}
        for (_, name), one in process.running(self.root).items():
            used[name] = used.get(name, 0) + cpu(one.pid)
        return used

    def rss(self):
        """MB that the program holds."""
        with open(f"/proc/{self.pid}/status") as file:  # noqa: PTH123
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024

    def requests(self):
        """The program's requests to both sides, so far, in the order of their time."""
        found = [one for side in (self.league.upper, self.league.lowers["lower"]) for one in side.requests()]
        return sorted(found, key=lambda one: one["requestReceivedTimestamp"])

    async def settled_requests(self):
        """All requests; an audit log is written a moment after the answer."""
        last = -1
        while last != len(now := self.requests()):
            last = len(now)
            await asyncio.sleep(1)
        return now


def cpu(pid):
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Life:
    """How long it took so many pods to run and to go, and what was used for it."""

    pods: int
    running: float
    gone: float

    @property
    def rate(self):
        return self.pods / self.running


async def life(client, count, *, on="", also=None):
    """Let a Deployment's pods run and go; seconds for both. `also` must have no pod left, either."""
    name = f"web-{count}"
    made = deployment(name, count, on=on)
    if not on:
        made["spec"]["template"]["spec"].pop("nodeSelector", None)
    began = time.perf_counter()
    await client.create(resources.DEPLOYMENTS, Object.of(made), namespace="default")
    await watched(client, name, running=count)
    running = time.perf_counter() - began
    began = time.perf_counter()
    await client.delete(resources.DEPLOYMENTS, name, namespace="default")
    for each in (client, also):
        if each is not None:
            await watched(each, name, running=0)
    return Life(count, running, time.perf_counter() - began)


async def watched(client, app, *, running):
    """Follow pods until so many of them run; with 0, until none is left."""
    runs, there, is_listed = set(), set(), False  # counted as they come: the bench must not use the machine up itself
    changes = watching.watch(client, resources.PODS, namespace="default", labels=f"app={app}")
    async with asyncio.timeout(1800), contextlib.aclosing(changes):
        async for change in changes:
            match change:
                case watching.Added(obj) | watching.Modified(obj):
                    there.add(obj.name)
                    if obj.name not in runs and obj.status.get("phase") == "Running":
                        runs.add(obj.name)
                case watching.Deleted(obj):
                    there.discard(obj.name)
                    runs.discard(obj.name)
                case watching.Synced():
                    is_listed = True
            if is_listed and (len(runs) >= running if running else not there):
                return


COSTS = {}


@dataclass
class Side:
    """What one of the two took for the same pods, round after round."""

    lives: list[Life]
    used: list[dict[str, float]]  # ms of CPU for a pod, by the process

    @property
    def rate(self):
        return statistics.median(one.rate for one in self.lives)

    @property
    def gone(self):
        return statistics.median(one.gone for one in self.lives)

    @property
    def cpu(self):
        return {name: statistics.median(one[name] for one in self.used) for name in self.used[0]}

    async def round(self, bench, *where, **how):
        before = bench.cpus()
        self.lives.append(lived := await life(*where, **how))
        after = bench.cpus()
        self.used.append({name: 1000 * (after[name] - before[name]) / lived.pods for name in before})


@pytest.mark.parametrize("count", SIZES)
async def test_pods_through_one_virtual_node_beside_a_plain_cluster(bench, count):
    upper, lower = bench.clients["upper"], bench.clients["lower"]
    await life(upper, 100, on="lower", also=lower)  # warm
    before, looks = len(await bench.settled_requests()), await reconciles(bench.league.port)
    plain, ours = Side([], []), Side([], [])
    for _ in range(ROUNDS):
        await plain.round(bench, bench.clients["plain"], count)
        await ours.round(bench, upper, count, on="lower", also=lower)
    looks = await reconciles(bench.league.port) - looks
    requests, pods = (await bench.settled_requests())[before:], ROUNDS * count
    writes = [one for one in requests if one["verb"] in WRITES and one["objectRef"]["resource"] not in HEARTBEATS]
    lists = [one for one in requests if one["verb"] == "list"]
    print(f"\n{count} pods, medians of {ROUNDS}: plain {plain.rate:.0f}/s and gone in {plain.gone:.1f} s, ", end="")
    print(f"ours {ours.rate:.0f}/s and gone in {ours.gone:.1f} s")
    figure("pods Running per second, of the plain cluster's", ours.rate / plain.rate, least=LEAST_RATE)
    figure("writes for a pod's life", len(writes) / pods, most=MOST_WRITES)
    figure("CPU for a pod's life, ms", ours.cpu[HANSA], most=MOST_CPU_MS)
    # A busy machine makes milliseconds longer, but all of them.
    part = ours.cpu[HANSA] / plain.cpu["kube-apiserver"]
    print(f"  {part:.2f} of what the plain cluster's API server takes for it; {looks / pods:.1f} looks at it")
    for what, side in (("plain", plain), ("ours", ours)):
        told = ", ".join(f"{name} {ms:.1f}" for name, ms in sorted(side.cpu.items(), key=lambda one: -one[1]))
        print(f"  CPU of all, {what}: {sum(side.cpu.values()):.1f} ms a pod: {told}")
    figure("deletion, times the plain cluster's", ours.gone / plain.gone, most=MOST_DELETION)
    figure("lists", len(lists), most=0)
    print(f"  RSS {bench.rss():.0f} MB; {summary(writes, pods)}")
    COSTS[count] = ours.cpu[HANSA]


def summary(writes, count):
    counts = {}
    for one in writes:
        ref = one["objectRef"]
        code = one["responseStatus"]["code"]
        what = f"{one['verb']} {ref['resource']}{'/' + ref['subresource'] if 'subresource' in ref else ''}"
        what += "" if code < 400 else f" ({code})"
        counts[what] = counts.get(what, 0) + 1
    return ", ".join(f"{what} {number / count:.2f}" for what, number in sorted(counts.items()))


async def test_the_way_of_a_lone_pod(bench):
    """From the moment that a pod is bound above to the moment that it is created below, as the audit logs tell."""
    upper = bench.clients["upper"]
    names = [f"lone-{n}" for n in range(50)]
    for name in names:
        await upper.create(
            resources.PODS, Object.of(pod(name, on="lower", metadata={"labels": {"app": name}})), namespace="default"
        )
        await watched(upper, name, running=1)
    await bench.settled_requests()
    bound = times(bench.league.upper, "kube-scheduler", "binding")
    made = times(bench.league.lowers["lower"], "hansa-virtual-node", "")
    ways = [1000 * (made[name] - bound[name]).total_seconds() for name in names]
    print(f"\nlone pods, bound above → created below: p50 {statistics.median(ways):.1f} ms, worst {max(ways):.1f} ms")
    for name in names:
        await upper.delete(resources.PODS, name, namespace="default")
    for name in names:
        await watched(upper, name, running=0)
    figure("bound above → created below, p50, ms", statistics.median(ways), most=MOST_LATENCY_MS)


def times(side, agent, subresource):
    """When each pod was created, or bound, successfully."""
    found = {}
    for one in side.requests(agent=agent):
        ref = one.get("objectRef", {})
        is_meant = ref.get("resource") == "pods" and ref.get("subresource", "") == subresource
        if one["verb"] == "create" and is_meant and one["responseStatus"]["code"] < 300 and "name" in ref:
            found[ref["name"]] = datetime.fromisoformat(one["stageTimestamp"])
    return found


async def test_ten_thousand_pods_and_a_restart(bench):
    upper, lower, league = bench.clients["upper"], bench.clients["lower"], bench.league
    names = [f"many-{n}" for n in range(MANY // CHUNK)]
    print(f"\n{MANY} pods, {CHUNK} after the other")
    came = await in_turn(bench, names, lambda name: make(upper, name))
    figure(f"RSS with {MANY} pods, MB", bench.rss(), most=MOST_RSS_MB)
    await league.kill()
    meanwhile = pod("meanwhile", on="lower", metadata={"labels": {"app": "meanwhile"}})
    await upper.create(resources.PODS, Object.of(meanwhile), namespace="default")
    began = time.perf_counter()
    await league.start("--log-level", "warn")
    await watched(upper, "meanwhile", running=1)
    await eventually(lambda: is_idle(league.port), within=120)
    figure(f"restart with {MANY} pods, s", time.perf_counter() - began, most=MOST_RESTART)
    figure("RSS after the restart, MB", bench.rss(), most=MOST_RSS_MB)
    await upper.delete(resources.PODS, "meanwhile", namespace="default")
    await watched(lower, "meanwhile", running=0)
    went = await in_turn(bench, names, lambda name: remove(upper, lower, name))
    COSTS[MANY] = statistics.mean(came) + statistics.mean(went)


async def in_turn(bench, names, work):
    """Do something with each Deployment; Hansa's CPU for a pod of each, in ms. What else is there must not matter."""
    costs = []
    for name in names:
        cpu, began = bench.cpu(), time.perf_counter()
        await work(name)
        costs.append(1000 * (bench.cpu() - cpu) / CHUNK)
        print(f"  {name}: CPU {costs[-1]:.2f} ms a pod, {CHUNK / (time.perf_counter() - began):.0f} pods/s")
    return costs


async def make(upper, name):
    await upper.create(resources.DEPLOYMENTS, Object.of(deployment(name, CHUNK, on="lower")), namespace="default")
    await watched(upper, name, running=CHUNK)


async def remove(upper, lower, name):
    await upper.delete(resources.DEPLOYMENTS, name, namespace="default")
    for side in (upper, lower):
        await watched(side, name, running=0)


async def is_idle(port):
    """Nothing waits for a worker, and none works."""
    busy = await metrics(port, "hansa_queue_depth{", "hansa_queue_working{")
    return busy and not any(busy)


async def reconciles(port):
    """How often a key was looked at, so far."""
    return sum(await metrics(port, "hansa_reconciles_total{"))


async def metrics(port, *beginnings):
    """The numbers of some series."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    lines = (await reader.read()).decode().splitlines()
    writer.close()
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith(beginnings)]


def test_the_cost_of_a_pod_is_the_same_for_few_and_for_many():
    print("\n  CPU for a pod's life, ms: " + ", ".join(f"{count} pods {cost:.2f}" for count, cost in COSTS.items()))
    least, most = min(COSTS.values()), max(COSTS.values())
    figure("dearest beside cheapest", most / least - 1, most=MOST_SPREAD)
