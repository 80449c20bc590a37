"""Holds of shards, and writes that end when the member has to stop."""

import asyncio

import pytest

import simulation
from hansa.control.sharding.guard import Guard
from hansa.kube import errors, sending


def test_a_shard_is_held_until_its_last_hold_ends():
    freed = []
    guard = Guard(lambda: freed.append(None))
    with guard.hold(3), guard.hold(5):
        with guard.hold(3):
            assert guard.held == 1 << 3 | 1 << 5
        assert guard.held == 1 << 3 | 1 << 5
        assert not freed
    assert (guard.held, len(freed)) == (0, 2)


def test_writes_in_flight_end_at_the_deadline_unless_it_is_moved():
    async def main(world):
        guard = Guard(lambda: None)

        async def write(seconds):
            async with guard.write(1, lambda: True):
                await world.clock.sleep(seconds)
            return world.clock.now()

        guard.stop_after(5.0)
        short, long = asyncio.create_task(write(4)), asyncio.create_task(write(60))
        await world.clock.sleep(3)
        assert guard.held == 1 << 1
        guard.stop_after(5.0)  # a renewal
        assert await short == 4.0
        with pytest.raises(errors.Unreachable, match="could not renew its Lease"):
            await long
        assert (world.clock.now(), guard.held) == (8.0, 0)

    simulation.run(main)


def test_requests_inside_are_sent_only_while_the_shard_may_be_written():
    async def main(_world):
        guard, answers = Guard(lambda: None), [True]
        async with guard.write(1, lambda: answers[0]):
            check = sending.check_of("POST", None)
        assert check()
        answers[0] = False
        assert not check()
        assert sending.check_of("POST", None) is None

    simulation.run(main)
