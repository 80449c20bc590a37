"""A cluster that is not joined: closed until the timeout, lost afterwards, and at once if it left the pool."""

import asyncio

import simulation
from hansa.scheduling.pooling.absent_clusters import AbsentClusters
from hansa.scheduling.slicing.pool import State

TIMEOUT = 10.0


def play(scene):
    async def main(world):
        lost = []
        absent = AbsentClusters(clock=world.clock, loss_timeout=lambda _: TIMEOUT, notify=lost.append)
        await scene(absent, lost)
        absent.close()

    simulation.run(main)


def test_a_cluster_that_never_joined_is_closed_and_lost_by_the_clock():
    async def scene(absent, lost):
        await asyncio.sleep(100)  # on standby, before the leader's time
        absent.start()
        assert absent.state("r1")[0] is State.CLOSED
        assert [one.state for one in absent.members(["r1"]).values()] == [State.CLOSED]
        assert set(absent.closed) == {"r1"}
        await asyncio.sleep(TIMEOUT + 1)
        assert lost == ["r1"]
        assert absent.state("r1")[0] is State.LOST
        assert absent.members(["r1", "nobody"]) == {}
        assert not absent.closed, "names that tenants write are not kept"

    play(scene)


def test_a_report_that_it_is_reachable_extends_the_time():
    async def scene(absent, lost):
        assert absent.state("r1")[0] is State.CLOSED
        await asyncio.sleep(TIMEOUT - 1)
        absent.see("r1")
        await asyncio.sleep(TIMEOUT - 1)
        assert (absent.state("r1")[0], lost) == (State.CLOSED, [])
        await asyncio.sleep(2)
        assert lost == ["r1"]

    play(scene)


def test_a_cluster_that_left_the_pool_is_lost_at_once_until_it_joins_again():
    async def scene(absent, lost):
        absent.leave("r1")
        absent.see("r1")
        assert absent.state("r1")[0] is State.LOST
        absent.join("r1")
        assert absent.state("r1")[0] is State.CLOSED
        absent.join("r1")
        await asyncio.sleep(2 * TIMEOUT)
        assert lost == [], "it is joined, so its state is not kept here"

    play(scene)
