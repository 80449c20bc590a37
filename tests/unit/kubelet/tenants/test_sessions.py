"""Limits of a tenant's connections and bandwidth."""

import asyncio

import pytest

import simulation
from hansa.kubelet.tenants.sessions import Sessions
from hansa.runtime.bandwidth import Bandwidth


async def clock_of(world):
    return world.clock


def test_a_tenant_that_has_too_many_connections_leaves_others_theirs():
    async def main(world):
        sessions = Sessions(most=2, rate=0.0, clock=world.clock)
        held, seen = asyncio.Event(), []

        async def hold(key):
            with sessions.open(key) as session:
                seen.append((key, session.is_surplus))
                await held.wait()

        async with asyncio.TaskGroup() as group:
            for key in ("a", "a", "a", "a", "b"):
                group.create_task(hold(key))
            await asyncio.sleep(1)
            with pytest.raises(ConnectionAbortedError), sessions.open("a"):
                pass
            counts = dict(sessions.counts())
            held.set()
        return seen, counts, dict(sessions.counts())

    seen, counts, after = simulation.run(main)
    assert seen == [("a", False), ("a", False), ("a", True), ("a", True), ("b", False)]
    assert (counts, after) == ({("a",): 4.0, ("b",): 1.0}, {})


def test_tenants_that_have_all_their_connections_leave_a_further_one_its_own():
    assert Sessions(most=100, rate=0.0, clock=simulation.run(clock_of)).most(5) >= 5 * 200 + 200


def test_the_connections_of_a_tenant_that_is_gone_end_at_once():
    async def main(world):
        sessions = Sessions(most=5, rate=0.0, clock=world.clock)

        async def hold(key):
            with sessions.open(key):
                await asyncio.sleep(100)

        tasks = [asyncio.create_task(hold(key)) for key in ("a", "a", "b")]
        await asyncio.sleep(1)
        sessions.end("a")
        sessions.end("nobody")
        await asyncio.wait(tasks[:2])
        return [task.cancelled() for task in tasks[:2]], tasks[2].done(), dict(sessions.counts())

    assert simulation.run(main) == ([True, True], False, {("b",): 1.0})


def test_connections_of_a_tenant_share_its_bandwidth_after_a_burst_of_one_second():
    async def main(world):
        shared = Bandwidth(100.0, clock=world.clock)
        began = world.clock.now()

        async def send():
            for _ in range(5):
                await shared.take(100)

        await asyncio.gather(send(), send())
        return world.clock.now() - began

    assert simulation.run(main) == pytest.approx(9.0, abs=1.0)


def test_no_rate_is_no_limit():
    async def main(world):
        await Bandwidth(0.0, clock=world.clock).take(10**12)
        return world.clock.now()

    assert simulation.run(main) == 0.0
