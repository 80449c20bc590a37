"""Simulated time: an event loop that, when it has nothing to do, jumps to its next timer instead of waiting for it.

Everything that waits by asyncio runs on it unchanged, always in the same order, and an hour takes milliseconds.
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
    """Nothing runs, and no timer will ever wake anything."""


class JumpingSelector(selectors.DefaultSelector):
    """Never waits: the time asked for passes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise StuckError("every task waits for something that cannot come")
        self.now += timeout
        return ready


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a number."""

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
    """What is injected everywhere: a clock, randomness from a seed, and a fresh registry."""

    def __init__(self, seed: int = 0) -> None:
        self.clock = SimulatedClock()
        self.random = random.Random(seed)
        self.metrics = metrics.Registry()


def run(main: Callable[[World], Coroutine[Any, Any, T]], seed: int = 0) -> T:
    """Run a coroutine function on simulated time to its end."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main(World(seed)))
