"""The open connections of each tenant: how many there may be, the bandwidth that they share, and their end.

One tenant cannot take the connections or the bandwidth of others. Connections of callers that are no tenant share one
limit, under the key "".
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hansa.runtime import clock
from hansa.runtime.bandwidth import Bandwidth


@dataclass(slots=True)
class Session:
    """One connection; `is_surplus` if the tenant has too many, so that its request is refused."""

    bandwidth: Bandwidth
    is_surplus: bool


@dataclass(slots=True)
class _Share:
    bandwidth: Bandwidth
    tasks: set[asyncio.Task[object]] = field(default_factory=set)


class Sessions:
    """The connections by tenant key."""

    def __init__(self, *, most: int, rate: float, clock: clock.Clock) -> None:
        self._most, self._rate, self._clock = most, rate, clock
        self._shares: dict[str, _Share] = {}

    def most(self, tenants: int) -> int:
        """How many connections so many tenants may have together, with those of callers that are no tenant."""
        return 2 * self._most * (tenants + 1)

    @contextlib.contextmanager
    def open(self, key: str) -> Iterator[Session]:
        """Count the connection of the current task. Beyond twice the limit it is closed without an answer."""
        share = self._shares.setdefault(key, _Share(Bandwidth(self._rate, clock=self._clock)))
        if len(share.tasks) >= 2 * self._most:
            raise ConnectionAbortedError(f"too many connections of tenant {key}")
        task = asyncio.current_task()
        assert task is not None  # connections are tasks
        is_surplus = len(share.tasks) >= self._most
        share.tasks.add(task)
        try:
            yield Session(share.bandwidth, is_surplus)
        finally:
            share.tasks.discard(task)
            if not share.tasks and self._shares.get(key) is share:
                del self._shares[key]

    def end(self, key: str) -> None:
        """End all connections of a tenant."""
        for task in self._shares[key].tasks if key in self._shares else ():
            task.cancel()

    def counts(self) -> Mapping[tuple[str, ...], float]:
        """The number of connections by tenant key."""
        return {(key,): float(len(share.tasks)) for key, share in self._shares.items() if key}
