"""The periodic resync: all keys are enqueued once per period, spread evenly so that the load stays flat.

It corrects differences that no watch event reports, such as those that a bug of ours left.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from hansa.runtime import clock

K = TypeVar("K", bound=Hashable)
SHORTEST_STEP = 0.1  # seconds; with more keys than steps, several go at once


class Audit(Generic[K]):
    """Calls `add` with all of `keys()` in each period (in seconds)."""

    def __init__(
        self, keys: Callable[[], Iterable[K]], add: Callable[[K], None], *, period: float, clock: clock.Clock
    ) -> None:
        self._keys, self._add, self._period, self._clock = keys, add, period, clock

    async def run(self) -> None:
        """Resync until cancelled."""
        while True:
            await self._run_period()

    async def _run_period(self) -> None:
        began, keys = self._clock.now(), list(self._keys())
        steps = max(1, min(len(keys), int(self._period / SHORTEST_STEP)))
        for step in range(1, steps + 1):
            await self._clock.sleep(began + step * self._period / steps - self._clock.now())
            for key in keys[(step - 1) * len(keys) // steps : step * len(keys) // steps]:
                self._add(key)
