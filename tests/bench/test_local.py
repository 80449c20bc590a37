"""How long local clusters take to start, and what an idle one costs. Prints figures; nothing here fails by time."""

import asyncio
import time

import pytest

from hansa.local import ClusterSpec
from hansa.programs import process

IDLE_SECONDS = 30.0


@pytest.mark.parametrize("count", [1, 3, 10])
async def test_seconds_from_up_to_ready(fleet, count):
    wishes = [ClusterSpec(f"bench-{index}", nodes=1) for index in range(count)]
    began = time.monotonic()
    await fleet.up(wishes)
    print(f"\n{count} clusters of one node: ready after {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    await fleet.down([wish.name for wish in wishes])
    print(f"{count} clusters gone after {time.monotonic() - began:.1f} s")


async def test_the_cost_of_an_idle_cluster(fleet):
    await fleet.up([ClusterSpec("idle", nodes=3)])
    await asyncio.sleep(IDLE_SECONDS)
    running = process.running(fleet.state.root)
    before = {key: _cpu_seconds(p.pid) for key, p in running.items()}
    await asyncio.sleep(IDLE_SECONDS)
    print(f"\n{'component':<26}{'PSS MiB':>9}{'CPU %':>7}")
    for (cluster, component), p in sorted(running.items()):
        cpu = 100 * (_cpu_seconds(p.pid) - before[cluster, component]) / IDLE_SECONDS
        print(f"{component:<26}{_pss_mib(p.pid):>9.0f}{cpu:>7.1f}")
    await fleet.down(["idle"])


def _cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
        fields = file.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _pss_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:  # noqa: PTH123
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
