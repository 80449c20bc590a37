"""Writes in flight to one cluster: one that takes long makes us ask whether the server is well, and all of them end
when it is not. The server's own word, and the deadline of each request, are left to others.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hansa.engine.health import Health
from hansa.kube import errors

LONG = 1.0  # seconds without an answer, after which a server is suspected


class Flights:
    """The writes to one cluster that have no answer yet. Its length is how many they are."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._begun: dict[asyncio.Timeout, float] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None
        health.listen(self._look)

    def __len__(self) -> int:
        return len(self._begun)

    @contextlib.asynccontextmanager
    async def flight(self) -> AsyncIterator[None]:
        """Write inside. It ends with `Unreachable` when the cluster cannot be reached any more."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(0 if self._health.trouble else None) as scope:
                self._begun[scope] = loop.time()
                if self._timer is None:
                    self._timer = loop.call_later(LONG, self._watch)
                try:
                    yield
                finally:
                    del self._begun[scope]
        except errors.Unreachable:
            raise
        except errors.ApiError:
            self._health.trust()
            raise
        except TimeoutError:
            if not scope.expired():
                raise
            raise errors.Unreachable(
                f"given up, because the cluster cannot be reached: {self._health.trouble}"
            ) from None
        self._health.trust()

    def _watch(self) -> None:
        """Suspect a server whose oldest answer is overdue; look again when the next one would be."""
        self._timer = None
        oldest = next(iter(self._begun.values()), None)
        if oldest is None:
            return
        loop = asyncio.get_running_loop()
        due = oldest + LONG
        if due <= loop.time():
            self._health.suspect()
            due = loop.time() + LONG
        self._timer = loop.call_at(due, self._watch)

    def _look(self) -> None:
        if self._health.trouble:
            for scope in self._begun:
                scope.reschedule(0)
