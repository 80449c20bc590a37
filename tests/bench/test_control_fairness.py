"""How long ten keys of one group take alone, and beside a group of ten thousand."""

import asyncio
import statistics
import time

import pytest

from figures import figure
from hansa.control import controller, queue
from machinery import Machine

GREEDY, SMALL, ROUNDS, PAIRS = 10_000, 10, 15, 7
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


class Rounds:
    """One controller, a small group that comes now and then, and a greedy one that stays if it is let in."""

    def __init__(self, machine, reconcile):
        self.reconcile, self.done, self.left = reconcile, asyncio.Event(), 0
        self.queue = queue.Queue("bench", group=lambda key: key[0], **machine.injected())
        worker = controller.Controller("bench", self.count, queue=self.queue, metrics=machine.metrics)
        machine.supervisor.start("workers", worker.run)

    async def count(self, key):
        outcome = await self.reconcile(key)
        if key[0] == "greedy":
            self.queue.add(key)  # it stays greedy for as long as we measure
        else:
            self.left -= 1
            if not self.left:
                self.done.set()
        return outcome

    def let_greedy_in(self):
        for number in range(GREEDY):
            self.queue.add(("greedy", number))

    async def seconds_for_small(self):
        """The median time of a group of ten keys."""
        times = []
        for _ in range(ROUNDS):
            await asyncio.sleep(0.02)
            self.done.clear()
            self.left = SMALL
            began = time.perf_counter()
            for number in range(SMALL):
                self.queue.add(("small", number))
            async with asyncio.timeout(60):
                await self.done.wait()
            times.append(time.perf_counter() - began)
        return statistics.median(times)


async def alone_and_beside(reconcile):
    async with Machine() as machine:
        rounds = Rounds(machine, reconcile)
        alone = await rounds.seconds_for_small()
        rounds.let_greedy_in()
        return alone, await rounds.seconds_for_small()


@pytest.mark.parametrize("reconcile", [waiting, computing, both])
async def test_a_greedy_group_of_ten_thousand_keys_hardly_delays_ten_of_another(reconcile):
    # Side by side and several times: what else runs on the machine changes from second to second.
    pairs = [await alone_and_beside(reconcile) for _ in range(PAIRS)]
    ratios = sorted(beside / alone for alone, beside in pairs)
    ratio = statistics.median(ratios)
    alone, beside = (1000 * statistics.median(times) for times in zip(*pairs, strict=True))
    print(
        f"\nfairness, {reconcile.__name__:9}: ten keys alone {alone:5.2f} ms, beside {GREEDY} of another group "
        f"{beside:5.2f} ms ({ratios[0]:.2f} to {ratios[-1]:.2f} times)"
    )
    figure("ten keys beside a greedy group, times their time alone", ratio, most=MOST)
