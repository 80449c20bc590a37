"""Slow callers, broken connections, a lower cluster that does not answer: none blocks others, and all is closed."""

import asyncio
import contextlib
from pathlib import Path

import pytest

import kubelet_calls
from eventually import eventually

LOG = "/api/v1/namespaces/overlay/pods/box/log?follow=true&tailLines=1"


@pytest.fixture
async def is_open(proxy, tensile):
    """Waits until so many calls are open: connections of callers, and ones to the lower cluster beside those before."""

    async def are(number):
        async def look():
            found = (accepted(port), proxy.connections - before)
            assert found == (number, number), found
            return True

        await eventually(look)

    before, port = proxy.connections, await tensile.port()
    return are


def accepted(port):
    """The number of connections that a listening socket of this machine has accepted."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    established = "01"
    return sum(row[1].endswith(f":{port:04X}") and row[3] == established for row in rows)


async def test_a_stream_that_is_closed_above_is_closed_below(tensile, is_open):
    async with tensile.upper.cluster.client("test") as client:
        streams = await asyncio.gather(*(client.open(LOG) for _ in range(5)))
        await is_open(5)
        for one in streams:
            one.close()
        await is_open(0)
    async with tensile.started("exec", "box", "--", "sleep", "1000"):
        await is_open(1)
    await is_open(0)


async def test_a_stream_that_ends_below_ends_above(tensile, is_open):
    async with tensile.started("exec", "-i", "box", "--", "sh", "-c", "echo $$; exec sleep 1000") as shell:
        pid = (await shell.stdout.readline()).strip().decode()
        await is_open(1)
        await tensile.above("exec", "box", "--", "kill", "-9", pid, may_fail=False)
        async with asyncio.timeout(60):
            assert await shell.wait() == 137
    await is_open(0)


async def test_a_caller_that_does_not_read_blocks_nobody_and_takes_no_memory(tensile, league, is_open):
    before = memory(league)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(tensile.started("exec", "box", "--", "sh", "-c", "yes"))
        await is_open(3)
        code, out, _ = await tensile.above("exec", "box", "--", "echo", "still here")
        assert (code, out) == (0, b"still here\n")
        assert memory(league) < before + 16 * 2**20
    await is_open(0)


async def test_a_lower_cluster_that_does_not_answer_delays_only_its_pods(tensile, proxy, administrator):
    port, token = await tensile.port(), administrator
    proxy.freeze()
    try:
        refused = asyncio.create_task(kubelet_calls.call(port, "/containerLogs/overlay/box/main", token=token))
        assert await kubelet_calls.call(port, "/healthz", token=token) == (200, "ok")
        assert (await kubelet_calls.call(port, "/pods", token=token))[0] == 200
        assert (await kubelet_calls.call(port, "/stats/summary", token=token))[0] == 200
        status, sentence = await refused
        assert (status in (502, 503), "kubelet-lower" in sentence) == (True, True), (status, sentence)
    finally:
        proxy.thaw()
    await works(tensile)


async def test_a_lower_cluster_that_is_gone_ends_streams_at_once(tensile, proxy):
    async with tensile.upper.cluster.client("test") as client, tensile.started("exec", "-i", "box", "--", "cat") as cat:
        stream = await client.open(LOG)
        await stream.read()
        cat.stdin.write(b"there\n")
        assert await cat.stdout.readline() == b"there\n"
        await proxy.cut()
        async with asyncio.timeout(60):
            with contextlib.suppress(Exception):  # the end of a chunked answer is missing, so it is an error
                while await stream.read():
                    pass
            await cat.wait()
    await works(tensile)


async def works(way):
    """Wait until the node serves logs again."""

    async def look():
        code, out, err = await way.above("logs", "box", "--tail=1")
        assert (code, out != b"") == (0, True), err
        return True

    await eventually(look, within=90)


def memory(league):
    """The resident memory of the program, in bytes."""
    fields = Path(f"/proc/{league.program.pid}/statm").read_text().split()
    return int(fields[1]) * 4096
