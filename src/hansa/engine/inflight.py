"""Writes in flight to one cluster: a slow one triggers a probe, and all are cancelled when the cluster is unreachable.

The deadline of each request is the client's.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hansa.engine.probing import ReachabilityProbe
from hansa.kube import errors

SLOW = 1.0  # seconds without an answer, after which the server is probed


class InflightWrites:
    """The writes to one cluster that have no answer yet. Its length is their number."""

    def __init__(self, health: ReachabilityProbe) -> None:
        self._health = health
        self._begun: dict[asyncio.Timeout, float] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None
        health.listen(self._health_changed)

    def __len__(self) -> int:
        return len(self._begun)

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[None]:
        """Write inside. Raises `Unreachable` when the cluster becomes unreachable meanwhile."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(0 if self._health.error else None) as scope:
                self._begun[scope] = loop.time()
                if self._timer is None:
                    self._timer = loop.call_later(SLOW, self._watch)
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
            raise errors.Unreachable(f"cancelled, because the cluster is unreachable: {self._health.error}") from None
        self._health.trust()

    def _watch(self) -> None:
        """Probe a server whose oldest answer is overdue; check again when the next one would be."""
        self._timer = None
        oldest = next(iter(self._begun.values()), None)
        if oldest is None:
            return
        loop = asyncio.get_running_loop()
        due = oldest + SLOW
        if due <= loop.time():
            self._health.suspect()
            due = loop.time() + SLOW
        self._timer = loop.call_at(due, self._watch)

    def _health_changed(self) -> None:
        if self._health.error:
            for scope in self._begun:
                scope.reschedule(0)
