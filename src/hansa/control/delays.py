"""Delayed keys of a queue: each key once, at its earliest time, with one timer for all."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from hansa.runtime import clock

K = TypeVar("K", bound=Hashable)
SLACK = 64  # outdated heap entries that are tolerated before a clean-up


class Delays(Generic[K]):
    """Calls `due(key)` when the delay of a key is over. Of two delays of one key the shorter wins."""

    def __init__(self, due: Callable[[K], None], *, clock: clock.Clock) -> None:
        self._due, self._clock = due, clock
        self._times: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._sequence = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._times)

    def add(self, key: K, seconds: float) -> None:
        """Make the key due in so many seconds, or earlier if it was added with a shorter delay."""
        time = self._clock.now() + seconds
        if time >= self._times.get(key, float("inf")):
            return
        self._times[key] = time
        heapq.heappush(self._heap, (time, next(self._sequence), key))
        if len(self._heap) > 2 * len(self._times) + SLACK:
            self._heap = [entry for entry in self._heap if self._times.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)
        if self._heap[0][2] == key:
            self._set_timer()

    def clear(self) -> None:
        """Drop all keys."""
        self._times.clear()
        self._heap.clear()
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
        if self._heap:
            wait = max(0.0, self._heap[0][0] - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(wait, self._fire)

    def _fire(self) -> None:
        now = self._clock.now()
        try:
            while self._heap and self._heap[0][0] <= now:
                time, _, key = heapq.heappop(self._heap)
                if self._times.get(key) == time:
                    del self._times[key]
                    self._due(key)
        finally:
            self._set_timer()  # whatever happened with one key, the others are due
