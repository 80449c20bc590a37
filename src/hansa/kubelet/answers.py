"""Answers of an API server that are kept for a few seconds, so that a burst of requests asks once. Bounded."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from hansa.runtime import clock

KEPT_SECONDS = 10.0  # a right that was taken away can be used for so long
MOST = 1024

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Answers(Generic[K, V]):
    """Answers by key. Failures are not kept, but those who wait for the same answer share them."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._answers: dict[K, tuple[float, V]] = {}  # with the time of the answer, oldest first
        self._asked: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The answer that is kept, the one that another caller waits for, or a new one. `ask` must have a deadline."""
        kept = self._answers.get(key)
        if kept is not None and self._clock.now() < kept[0] + KEPT_SECONDS:
            return kept[1]
        if (asked := self._asked.get(key)) is None:
            asked = self._asked[key] = asyncio.create_task(ask())
            asked.add_done_callback(lambda task: self._answered(key, task))
        return await asyncio.shield(asked)  # others may wait for it, too

    def _answered(self, key: K, task: asyncio.Task[V]) -> None:
        del self._asked[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._answers.pop(key, None)
        self._answers[key] = (self._clock.now(), task.result())
        if len(self._answers) > MOST:
            del self._answers[next(iter(self._answers))]
