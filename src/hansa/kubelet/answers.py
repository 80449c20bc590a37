"""Answers of an API server that are kept for a few seconds, so that a burst of requests asks once. Bounded."""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hansa.runtime import clock

KEPT_SECONDS = 10.0  # a right that was taken away can be used for so long
MOST = 1024

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Answers(Generic[K, V]):
    """Answers by key. Failures are not kept."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._answers: dict[K, tuple[float, V]] = {}  # with the time of the answer, oldest first

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """The answer that is kept, or a new one."""
        kept = self._answers.get(key)
        if kept is not None and self._clock.now() < kept[0] + KEPT_SECONDS:
            return kept[1]
        answer = await ask()
        self._answers.pop(key, None)
        self._answers[key] = (self._clock.now(), answer)
        if len(self._answers) > MOST:
            del self._answers[next(iter(self._answers))]
        return answer
