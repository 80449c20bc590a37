import asyncio
import itertools

import simulation
from hansa.runtime import errors, tasks


def supervisor(world):
    return tasks.Supervisor(clock=world.clock, random=world.random, metrics=world.metrics)


def test_a_failed_part_starts_again_with_growing_waits_and_the_others_run_on():
    async def main(world):
        starts, ticks = [], []

        async def failing():
            starts.append(world.clock.now())
            if len(starts) < 6:
                raise ValueError("broken")

        async def other():
            while True:
                await world.clock.sleep(1)
                ticks.append(world.clock.now())

        async with supervisor(world) as owner:
            task = owner.start("failing", failing)
            owner.start("other", other)
            await task
            await world.clock.sleep(100 - world.clock.now())
        return starts, ticks, world.metrics.text()

    starts, ticks, text = simulation.run(main)
    waits = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert all(later > 1.3 * earlier for earlier, later in itertools.pairwise(waits))
    assert ticks[:99] == list(range(1, 100))
    assert 'hansa_task_failures_total{task="failing"} 5' in text


def test_a_part_that_ran_well_for_long_starts_again_soon():
    async def main(world):
        starts = []

        async def failing():
            starts.append(world.clock.now())
            await world.clock.sleep(0 if len(starts) < 8 else 1000)
            raise errors.HansaError("the cluster is away")

        async with supervisor(world) as owner:
            owner.start("failing", failing)
            await world.clock.sleep(5000)
        return starts

    starts = simulation.run(main)
    assert starts[-1] - starts[-2] - 1000 < 0.2


def test_a_cancellation_from_inside_is_a_failure_and_one_from_outside_ends_the_part():
    async def main(world):
        starts = []

        async def cancelled_inside():
            starts.append(world.clock.now())
            if len(starts) == 1:
                future = asyncio.get_running_loop().create_future()
                future.cancel()
                await future
            await asyncio.sleep(10**9)

        async with supervisor(world) as owner:
            task = owner.start("part", cancelled_inside)
            await world.clock.sleep(10)
            await tasks.cancel(task)
            return len(starts), task.cancelled()

    assert simulation.run(main) == (2, True)


def test_leaving_ends_all_parts():
    async def main(world):
        ended = []

        async def part():
            try:
                await asyncio.sleep(10**9)
            finally:
                await asyncio.sleep(1)
                ended.append(world.clock.now())

        async with supervisor(world) as owner:
            owner.start("a", part)
            owner.start("b", part)
            await world.clock.sleep(1)
        return ended

    assert simulation.run(main) == [2, 2]
