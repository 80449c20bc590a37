"""Simulated time: an event loop that jumps to its next timer when it is idle.

Asyncio code runs on it unchanged, always in the same order; an hour takes milliseconds.
"""

import asyncio
import datetime
import random
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hansa.runtime import metrics

T = TypeVar("T")
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class StuckError(Exception):
    """No task can run, and no timer is set: a deadlock."""


class JumpingSelector(selectors.DefaultSelector):
    """Adds the timeout to its time instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise StuckError("every task waits, and no timer is set")
        self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop on the time of its selector."""

    def __init__(self) -> None:
        self._selected = JumpingSelector()
        super().__init__(self._selected)

    def time(self) -> float:
        return self._selected.now


class SimulatedClock:
    """The clock of the running simulated loop."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> datetime.datetime:
        return START + datetime.timedelta(seconds=self.now())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class World:
    """What every component takes: the simulated clock, a random source with a seed, and a metrics registry."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = SimulatedClock()
        self.random = random.Random(seed)
        self.metrics = metrics.Registry()


def run(main: Callable[[World], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a coroutine function on simulated time to its end."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main(World(seed)))
