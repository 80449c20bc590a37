"""How fast a pool is scheduled on real clusters: pods that are given a cluster each second, slices of namespaces."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from figures import figure
from hansa.kube import resources, watching
from hansa.local import ClusterSpec, NodeShape
from hansa.scheduling.pooling import pool_members
from hansa.tenancy import installing
from pool_league import PLACEMENTS, SUPER_CLUSTER, Pool, announce
from tenant_league import clusters_up

SUPERS = ("r1", "r2", "r3")
PODS, NAMESPACES, AT_ONCE = 1_000, 200, 50


async def test_how_fast_namespaces_and_pods_are_placed(fleet, kubectl, tmp_path):
    shape = NodeShape(cpu="1000", memory="4000Gi", pods="2000")
    wishes = [
        ClusterSpec("meta", scheduler=False, lift_limits=True),
        *(ClusterSpec(name, nodes=5, shape=shape, lift_limits=True) for name in SUPERS),
    ]
    async with clusters_up(fleet, kubectl, wishes) as sides:
        meta = sides["meta"]
        await installing.install(meta.client)
        await pool_members.resource(meta.client)
        pool = Pool(meta, {name: sides[name] for name in SUPERS}, tmp_path)
        await announce(meta)
        for name in SUPERS:
            await pool.add(name)
        slots = asyncio.Semaphore(AT_ONCE)

        async def make(work: Callable[[int], object], count: int) -> None:
            async def one(number: int) -> None:
                async with slots:
                    await work(number)

            await asyncio.gather(*(one(number) for number in range(count)))

        # Everything is there before the scheduler is, so that the API server's own work is not counted.
        await make(lambda number: pool.namespace(f"ns{number}", {"cpu": "10"}, slice_='{"cpu":"1"}'), NAMESPACES)
        await pool.namespace("many", {"cpu": "400"}, slice_='{"cpu":"1"}')
        await make(lambda number: pool.pod("many", f"p{number}", cpu="100m"), PODS)
        await pool.start()
        await pool.logged("scheduling started", after=0)
        began, cpu = time.perf_counter(), cpu_seconds(pool.program.pid)
        placed = await until(meta, resources.NAMESPACES, PLACEMENTS, NAMESPACES + 1, began)
        given = await until(meta, resources.PODS, SUPER_CLUSTER, PODS, began)
        cpu = cpu_seconds(pool.program.pid) - cpu
        await pool.stop()
    print()
    figure(f"{NAMESPACES} namespaces of 10 slices placed, s", placed, most=10)
    figure("pods given a cluster, each second", PODS / given, least=200)
    figure("the scheduler's CPU for each pod, ms", cpu / PODS * 1000, most=4)


def cpu_seconds(pid: int) -> float:
    """What a process used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until(side, resource, annotation, count, began) -> float:
    """Seconds until so many objects have the annotation."""
    there = set()
    async with asyncio.timeout(600), contextlib.aclosing(watching.watch(side.client, resource)) as changes:
        async for change in changes:
            if isinstance(change, watching.Added | watching.Modified) and annotation in change.obj.annotations:
                there.add(change.obj.key)
                if len(there) >= count:
                    break
    return time.perf_counter() - began
