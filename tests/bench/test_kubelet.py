"""Logs and terminals through a virtual node, beside the same directly below in the same run; a real kubelet."""

import statistics
import time

import pytest

import real_machine
from eventually import eventually
from figures import figure
from hansa.local import ClusterSpec
from hansa.local.machines import images
from idle_sessions import idle_sessions, resident_mb
from kubelet_ways import LOWER, UPPER, Way
from league import League, member

ROUNDS = 7
LEAST_THROUGHPUT, MOST_MEMORY_MB = 0.5, 100.0
SESSIONS = 500
LINES, WIDTH = 8000, 1000  # below the 10 MiB at which a kubelet rotates a log
WRITE = f'line=$(printf "%{WIDTH}s" x); i=0; while [ $i -lt {LINES} ]; do echo "$line"; i=$((i+1)); done; sleep 1000000'


@pytest.fixture(scope="module")
async def league(fleet, kubectl, tmp_path_factory):
    """A cluster without nodes, one with a real node, and the program."""
    folder = tmp_path_factory.mktemp("kubelet")
    real_machine.tools(folder)
    upper, lower = (
        member(made, kubectl) for made in await fleet.up([ClusterSpec(UPPER), ClusterSpec(LOWER, real_nodes=1)])
    )
    made = League(upper, {LOWER: lower}, folder)
    await made.start()
    await made.ready()
    yield made
    await made.stop()
    await fleet.down([UPPER, LOWER])


@pytest.fixture(scope="module")
async def way(league):
    made = Way(league.upper, league.lowers[LOWER], "default", f"vn-{LOWER}")
    await made.create("writer", images.BUSYBOX, "sh", "-c", WRITE)
    return made


async def test_log_throughput(way):
    async with way.upper.cluster.client("bench") as above, way.lower.cluster.client("bench") as below:
        wanted = LINES * (WIDTH + 1)

        async def is_written():
            return await read(below) == wanted

        await eventually(is_written, within=120, every=2)
        seconds = {above: [], below: []}
        for _ in range(ROUNDS):
            for client, taken in seconds.items():
                began = time.perf_counter()
                assert await read(client) == wanted
                taken.append(time.perf_counter() - began)
    rates = {client: wanted / 1e6 / statistics.median(taken) for client, taken in seconds.items()}
    print(f"\n  a log of {wanted / 1e6:.0f} MB: {rates[above]:.0f} MB/s above, {rates[below]:.0f} MB/s below")
    figure(
        "log throughput through a virtual node, relative to direct", rates[above] / rates[below], least=LEAST_THROUGHPUT
    )


async def read(client):
    stream = await client.open("/api/v1/namespaces/default/pods/writer/log")
    size = 0
    while data := await stream.read():
        size += len(data)
    stream.close()
    return size


async def test_memory_of_idle_sessions(way, league):
    before = resident_mb(league.program.pid)
    async with way.upper.cluster.client("bench") as client, idle_sessions(client, "default/pods/writer", SESSIONS):
        more = resident_mb(league.program.pid) - before
        figure(f"memory of {SESSIONS} idle exec sessions, MB", more, most=MOST_MEMORY_MB)
