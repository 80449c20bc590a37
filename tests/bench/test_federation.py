"""Pods of a source in 2 and 6 targets, beside the same on a plain cluster in the same run, and with a silent target.

Admiralty's figures on this kind of machine: 0.86 pods/s with 2 targets, 28 (2 targets) to 67 (6) writes for a life.
"""

import asyncio
import contextlib
import os
import statistics
import time
from dataclasses import dataclass

import pytest
import yaml

from eventually import eventually
from federation import AGENT, Federation, a_secret, a_target, elected
from figures import figure
from hansa.kube import resources, watching
from hansa.kube.objects import Object
from hansa.local import ClusterSpec, NodeShape
from hansa.model import keys
from league import member

BURST = int(os.environ.get("HANSA_BENCH_BURST", "300"))
RATE = float(os.environ.get("HANSA_BENCH_RATE", "4"))  # pods a second of the open loop: leaves a core free
STEADY = int(os.environ.get("HANSA_BENCH_STEADY", "80"))  # pods of the open loop
ADMIRALTY_RATE = 0.86
MOST_WRITES, MOST_CPU_MS, LEAST_TIMES, MOST_CHANGE = 7.0, 8.0, 30.0, 0.15
WRITES = {"create", "update", "patch", "delete", "deletecollection"}
HEARTBEATS = {"nodes", "leases", "clustersummaries"}  # they cost by the hour, not by the pod
IDLE_SECONDS = 15.0
TARGETS = [f"t{number}" for number in range(1, 7)]
FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="module")
async def bench(fleet, kubectl, tmp_path_factory):
    """A plain cluster, a source, six clusters that can be its targets, and an agent for each of the last seven."""
    shape = NodeShape(cpu="1k", memory="10Ti", pods="10k")
    wishes = [
        ClusterSpec(name, nodes=0 if name == "source" else 4, shape=shape, audit=True, lift_limits=True, flags=FLUSH)
        for name in ("plain", "source", *TARGETS)
    ]
    members = {made.name: member(made, kubectl) for made in await fleet.up(wishes)}
    plain = members.pop("plain")
    federation = Federation(members, tmp_path_factory.mktemp("bench"), ("--log-level", "warn"))
    await federation.start()
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(one.cluster.client("hansa-bench")) for one in (plain, members["source"])
        ]
        yield Bench(federation, *clients)
    await federation.stop()


@dataclass
class Bench:
    """What is measured, and how."""

    federation: Federation
    plain: object
    source: object

    @property
    def members(self):
        return self.federation.members

    def cpu(self):
        """Seconds of CPU that all agents have used."""
        return sum(cpu(one.pid) for one in self.federation.agents.values())

    async def idle(self):
        """CPU of all agents while there are no pods, as a part of a core: it costs by the hour, too."""
        began, used = time.perf_counter(), self.cpu()
        await asyncio.sleep(IDLE_SECONDS)
        return (self.cpu() - used) / (time.perf_counter() - began)

    def rss(self):
        """MB that the source's agent holds."""
        with open(f"/proc/{self.federation.agents['source'].pid}/status") as file:  # noqa: PTH123
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024

    async def writes(self):
        """All writes of the agents that are not heartbeats; an audit log is written a moment after the answer."""
        before = None
        while before != len(now := [one for each in self.members.values() for one in writes_of(each)]):
            before = len(now)
            await asyncio.sleep(1)
        return {one["auditID"]: one for one in now}

    async def life(self, client, count, *, rate=0.0):
        """Create pods, all at once or so many a second, wait until they run, and delete them; seconds of each."""
        names = [f"p{time.monotonic_ns()}-{number}" for number in range(count)]
        seen, created = {}, {}
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(runs(client, set(names), seen))
            began = time.perf_counter()
            for number, name in enumerate(names):
                if rate:  # on schedule, whether the ones before have been answered or not
                    await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                created[name] = time.perf_counter()
                group.create_task(create(client, name))
            await watch
        whole = time.perf_counter() - began
        ended = time.perf_counter()
        await client.delete_collection(resources.PODS, namespace="default", labels="bench=yes")
        await eventually(lambda: all_gone(client), within=600, every=0.5)
        return Life(whole, time.perf_counter() - ended, [seen[name] - created[name] for name in names])

    async def measured(self, count, *, rate=0.0):
        """A life of pods in the federation with what the agents used for it."""
        before, idle = await self.writes(), await self.idle()
        began, used = time.perf_counter(), self.cpu()
        life = await self.life(self.source, count, rate=rate)
        used = self.cpu() - used - idle * (time.perf_counter() - began)
        writes = await self.writes()
        return life, 1000 * used / count, [writes[one] for one in writes.keys() - before.keys()]


@dataclass
class Life:
    """Seconds until all pods ran, until all were gone, and from creation to Running of each."""

    running: float
    gone: float
    latencies: list[float]

    @property
    def p50(self):
        return statistics.median(self.latencies)

    @property
    def p99(self):
        return sorted(self.latencies)[int(0.99 * (len(self.latencies) - 1))]

    def __str__(self):
        return f"create → Running p50 {self.p50:.2f} s, p99 {self.p99:.2f} s; gone in {self.gone:.1f} s"


def cpu(pid):
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def writes_of(member):
    """What an agent wrote in a cluster, without heartbeats."""
    found = member.requests(agent=AGENT)
    return [one for one in found if one["verb"] in WRITES and one["objectRef"]["resource"] not in HEARTBEATS]


async def create(client, name):
    pod = elected(name, cpu="10m")
    pod["metadata"]["labels"] = {"bench": "yes"}
    await client.create(resources.PODS, Object.of(pod), namespace="default")


async def runs(client, names, seen):
    """Follow pods until all of these run."""
    async with (
        asyncio.timeout(1200),
        contextlib.aclosing(watching.watch(client, resources.PODS, namespace="default", labels="bench=yes")) as changes,
    ):
        async for change in changes:
            match change:
                case watching.Added(obj) | watching.Modified(obj):
                    if obj.name in names and obj.name not in seen and obj.status.get("phase") == "Running":
                        seen[obj.name] = time.perf_counter()
            if len(seen) == len(names):
                return


async def all_gone(client):
    return not (await client.list(resources.PODS, namespace="default", labels="bench=yes")).items


def summary(writes, count):
    counts = {}
    for one in writes:
        ref, code = one["objectRef"], one["responseStatus"]["code"]
        what = f"{one['verb']} {ref['resource']}{'/' + ref['subresource'] if 'subresource' in ref else ''}"
        what += "" if code < 400 else f" ({code})"
        counts[what] = counts.get(what, 0) + 1
    return ", ".join(f"{what} {number / count:.2f}" for what, number in sorted(counts.items()))


@contextlib.asynccontextmanager
async def silent():
    """The address of a server that accepts connections and never answers."""
    held = []

    async def hold(_reader, writer):
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for writer in held:
        writer.close()


async def test_pods_of_a_source_in_two_and_in_six_targets(bench):
    await bench.members["source"].kubectl("label", "namespace", "default", f"{keys.ENABLED}=enabled")
    await bench.life(bench.plain, 30)
    plain = await bench.life(bench.plain, BURST)
    plain_steady = await bench.life(bench.plain, STEADY, rate=RATE)
    print(f"\nplain: burst of {BURST}: {BURST / plain.running:.0f}/s, {plain}; {RATE:g}/s: {plain_steady}")
    for number in (2, 6):
        for name in TARGETS[:number]:
            if await bench.members["source"].find("target", name, namespace="default") is None:
                await bench.federation.connect("source", name)
        await bench.life(bench.source, 30)  # warm
        good = await shown(bench, f"{number} targets", plain, plain_steady)
        async with silent() as address:
            source = bench.members["source"]
            config = yaml.safe_load(bench.members["t1"].cluster.kubeconfig.read_text())
            config["clusters"][0]["cluster"]["server"] = address
            await source.kubectl.apply(a_secret("silent", yaml.safe_dump(config)), a_target("silent", "default"))
            await bench.federation.ready(source, "target", "silent", namespace="default", status="False")
            bad = await shown(bench, f"{number} targets and a silent one", plain, plain_steady)
            await source.kubectl("-n", "default", "delete", "target/silent", "secret/silent", "--timeout=120s")
        for what, value in good.items():
            figure(f"  {what}, change by the silent target", abs(bad[what] / value - 1), most=MOST_CHANGE)


async def shown(bench, what, plain, plain_steady):
    steady, steady_cpu, steady_writes = await bench.measured(STEADY, rate=RATE)
    burst, burst_cpu, burst_writes = await bench.measured(BURST)
    print(f"{what}: burst of {BURST}: {burst} (plain {plain.p50:.2f} s, {plain.p99:.2f} s)")
    print(f"  {RATE:g}/s: {steady} (plain {plain_steady.p50:.2f} s, {plain_steady.p99:.2f} s)")
    figure(
        "pods Running per second in the burst, times Admiralty's",
        BURST / burst.running / ADMIRALTY_RATE,
        least=LEAST_TIMES,
    )
    figure("CPU of all agents for a pod's life, ms, open loop", steady_cpu, most=MOST_CPU_MS)
    figure("CPU of all agents for a pod's life, ms, burst", burst_cpu, most=MOST_CPU_MS)
    figure("writes for a pod's life, open loop", len(steady_writes) / STEADY, most=MOST_WRITES)
    figure("writes for a pod's life, burst", len(burst_writes) / BURST, most=MOST_WRITES)
    print(f"  RSS {bench.rss():.0f} MB; {summary(burst_writes, BURST)}")
    return {
        "pods a second": BURST / burst.running,
        "CPU, ms": burst_cpu,
        "writes": len(burst_writes) / BURST,
        "p50 at a fixed rate": steady.p50,
    }
