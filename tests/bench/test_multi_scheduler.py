"""Pods bound in a second by the stock kube-scheduler: with the extender, and without it, in turn. Limits are lifted."""

import asyncio
import contextlib
import os
import statistics
import time
from pathlib import Path

import pytest
import yaml

import multi_scheduling
import programs
import stock_scheduler
from eventually import eventually
from figures import figure
from hansa.kube import resources, watching
from hansa.kube.objects import Object
from hansa.programs import ports

PODS = int(os.environ.get("HANSA_BENCH_PODS", "1000"))
LOWERS, NODES, ROUNDS = ("west", "east"), 100, 3
LEAST_PART = 0.6
AT_ONCE = 50
ROOM = {"cpu": "1k", "memory": "4000Gi", "pods": "10k"}


def a_node(name, **labels):
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "status": {
                "capacity": ROOM,
                "allocatable": ROOM,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


@pytest.fixture
async def bench(fleet, tmp_path):
    """Two lower clusters of a hundred nodes, a virtual node for each, and the extender; its configuration."""
    async with stock_scheduler.bare_clusters(fleet, "upper", *LOWERS) as [upper, *lowers]:
        for cluster in (upper, *lowers):
            names = [f"vn-{name}" for name in LOWERS] if cluster is upper else [f"n{number}" for number in range(NODES)]
            async with cluster.client("hansa-bench") as client:
                for name in names:
                    labels = {"clusterID": name.removeprefix("vn-")} if cluster is upper else {}
                    await client.create(resources.NODES, a_node(name, **labels))
        files = {one.name: one.kubeconfig for one in lowers}
        config = multi_scheduling.write_configuration(tmp_path / "multi.json", upper.kubeconfig, files)
        [port, metrics] = ports.choose(2, taken=(), seed=str(tmp_path))
        flags = ("multi-scheduler", "--config", str(config), "--port", str(port))
        written = tmp_path / "written.yaml"
        async with programs.hansa(*flags, "--write-scheduler-config", str(written), log=tmp_path / "write.log") as made:
            assert await made.ended() == 0
        flags = (*flags, "--metrics-addr", f"127.0.0.1:{metrics}")
        async with programs.hansa(*flags, log=tmp_path / "multi-scheduler.log") as made:
            await eventually(lambda: listens(port))
            yield upper, yaml.safe_load(written.read_text())["extenders"], made


async def listens(port):
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        return True


async def bound_per_second(fleet, upper, folder, **fields):
    """Create the pods, start kube-scheduler, and take the time from the first binding to the last."""
    config = stock_scheduler.write_configuration(folder / "scheduler.yaml", upper.kubeconfig, **fields)
    async with upper.client("hansa-bench") as client:
        slots = asyncio.Semaphore(AT_ONCE)

        async def create(number):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}", "namespace": "default"}}
            async with slots:
                await client.create(resources.PODS, Object.of({**pod, "spec": {"containers": [container]}}))

        await asyncio.gather(*map(create, range(PODS)))
        async with stock_scheduler.running(fleet, config, log=folder / "kube-scheduler.log"):
            seconds = await asyncio.wait_for(bound(client), 600)
        await client.delete_collection(resources.PODS, namespace="default", grace=0)
    return (PODS - 1) / seconds


async def bound(client):
    """The seconds from the first binding to the last."""
    names, first = set(), 0.0
    async with contextlib.aclosing(watching.watch(client, resources.PODS, namespace="default")) as changes:
        async for change in changes:
            match change:
                case watching.Added(obj) | watching.Modified(obj) if obj.spec.get("nodeName"):
                    first = first or time.perf_counter()
                    names.add(obj.name)
                    if len(names) == PODS:
                        return time.perf_counter() - first
    raise AssertionError("the watch has ended")


async def test_pods_bound_per_second_with_the_extender_beside_the_stock_scheduler(bench, fleet, tmp_path):
    upper, extenders, program = bench
    stock, ours, cpu = [], [], []
    for _ in range(ROUNDS):
        stock.append(await bound_per_second(fleet, upper, tmp_path))
        before = used(program.pid)
        ours.append(await bound_per_second(fleet, upper, tmp_path, extenders=extenders))
        cpu.append(1000 * (used(program.pid) - before) / PODS)
    print(f"\n{PODS} pods, medians of {ROUNDS}: {statistics.median(stock):.0f}/s without the extender, ", end="")
    print(f"{statistics.median(ours):.0f}/s with it")
    part = statistics.median(one / other for one, other in zip(ours, stock, strict=True))
    figure("pods bound per second with the extender, of the stock's", part, least=LEAST_PART)
    figure("CPU of the extender for a pod, ms", statistics.median(cpu), most=5)


def used(pid):
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
