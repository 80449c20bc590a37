"""How long ten keys of one group take alone, and beside a group of ten thousand."""

import asyncio
import statistics
import time

import pytest

from hansa.control import controller, queue
from machinery import Machine

GREEDY, SMALL, ROUNDS = 10_000, 10, 15
MOST = 1.2


def burn(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def waiting(_):
    await asyncio.sleep(0.005)
    return controller.Done()


async def computing(_):
    burn(0.0005)
    return controller.Done()


async def both(_):
    burn(0.0001)
    await asyncio.sleep(0.005)
    burn(0.0001)
    return controller.Done()


async def seconds_for_small(machine, work, done, seconds_between):
    """The median time of a group of ten keys that comes now and then."""
    times = []
    for round_number in range(ROUNDS):
        await asyncio.sleep(seconds_between)
        done.clear()
        began = time.perf_counter()
        for number in range(SMALL):
            work.add(("small", round_number, number))
        async with asyncio.timeout(60):
            await done.wait()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


@pytest.mark.parametrize("reconcile", [waiting, computing, both])
async def test_a_greedy_group_of_ten_thousand_keys_hardly_delays_ten_of_another(reconcile):
    async with Machine() as machine:
        done, left = asyncio.Event(), {}

        async def counted(key):
            outcome = await reconcile(key)
            if key[0] == "small":
                left[key[1]] = left.get(key[1], SMALL) - 1
                if not left[key[1]]:
                    done.set()
            else:
                work.add(key)  # it stays greedy for as long as we measure
            return outcome

        work = queue.Queue("bench", group=lambda key: key[0], **machine.injected())
        worker = controller.Controller("bench", counted, queue=work, metrics=machine.metrics)
        machine.supervisor.start("workers", worker.run)
        alone = await seconds_for_small(machine, work, done, 0.02)
        left.clear()
        for number in range(GREEDY):
            work.add(("greedy", 0, number))
        beside = await seconds_for_small(machine, work, done, 0.02)
        print(
            f"\nfairness, {reconcile.__name__:9}: ten keys alone {alone * 1000:6.2f} ms, "
            f"beside {GREEDY} of another group {beside * 1000:6.2f} ms: {beside / alone:.2f} times (at most {MOST})"
        )
        assert beside <= MOST * alone
