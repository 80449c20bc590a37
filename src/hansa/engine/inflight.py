"""Requests in flight to a cluster: a slow one triggers a probe, all are cancelled when the cluster is unreachable.

Their number is limited where the cluster or whom the requests are for is not trusted: keys that exceed the limit wait
here. The deadline of each request is the client's.
"""

import asyncio
import collections
import contextlib
import itertools
import math
from collections.abc import AsyncIterator, Callable

from hansa.engine.probing import ReachabilityProbe
from hansa.kube import errors
from hansa.model.pair import Key
from hansa.runtime import listeners

SLOW = 1.0  # seconds without an answer, after which the server is probed
FULL = 5.0  # seconds for which keys wait without a break, after which the limit is reported: short bursts are normal
MANY = 64  # keys that are woken when no request is in flight any more; the audit wakes the others


class InflightRequests:
    """The requests to one cluster that have no answer yet. Its length is their number; `most` limits it.

    A request can be for an upper cluster, `upper`, which has a limit of its own.
    """

    def __init__(self, health: ReachabilityProbe) -> None:
        self.most: float = math.inf
        self._health = health
        self._begun: dict[asyncio.Timeout, float] = {}  # the oldest first
        self._of: collections.Counter[str] = collections.Counter()
        self._waiting: dict[str, _Waiting] = collections.defaultdict(_Waiting)
        self._listeners: listeners.Listeners[Callable[[str], None]] = listeners.Listeners()
        self._timer: asyncio.TimerHandle | None = None
        health.listen(self._health_changed)

    def __len__(self) -> int:
        return len(self._begun)

    def listen(self, notify: Callable[[str], None]) -> Callable[[], None]:
        """Call `notify` with an upper cluster when keys of it wait for long. The returned function removes it."""
        return self._listeners.add(notify)

    def has_room(self, upper: str, most: float) -> bool:
        """Whether one more request for an upper cluster may be sent, which may have so many."""
        return len(self._begun) < self.most and self._of[upper] < most

    def wait(self, upper: str, key: Key, wake: Callable[[Key], None]) -> None:
        """Call `wake` with a key of an upper cluster when there may be room."""
        waiting = self._waiting[upper]
        waiting.keys[key] = wake
        if waiting.timer is None:
            waiting.timer = asyncio.get_running_loop().call_later(FULL, self._report, upper)

    def waiting(self, upper: str | None = None) -> int:
        """How many keys of an upper cluster, or of all, wait where some have been waiting for long."""
        found = self._waiting.values() if upper is None else filter(None, [self._waiting.get(upper)])
        return sum(len(one.keys) for one in found if one.is_long)

    @contextlib.asynccontextmanager
    async def request(self, upper: str = "") -> AsyncIterator[None]:
        """Send a request inside. Raises `Unreachable` when the cluster becomes unreachable meanwhile."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(0 if self._health.error else None) as scope:
                self._begun[scope] = loop.time()
                self._of[upper] += 1
                if self._timer is None:
                    self._timer = loop.call_later(SLOW, self._watch)
                try:
                    yield
                finally:
                    self._end(scope, upper)
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

    def _end(self, scope: asyncio.Timeout, upper: str) -> None:
        """A request has ended: wake a key of the same upper cluster, and one of another, which may need its place."""
        del self._begun[scope]
        self._of[upper] -= 1
        if not self._of[upper]:
            del self._of[upper]
        others = itertools.islice((one for one in self._waiting if one != upper), 1 if self._begun else None)
        for one in (*([upper] if upper in self._waiting else []), *others):
            # A key that is woken may have nothing to send any more, and wakes no other: the last request wakes more.
            self._wake(one, 1 if self._begun and (one != upper or upper in self._of) else MANY)

    def _wake(self, upper: str, number: int) -> None:
        waiting = self._waiting[upper]
        for key in list(itertools.islice(waiting.keys, number)):
            waiting.keys.pop(key)(key)
        if not waiting.keys:
            del self._waiting[upper]
            if waiting.timer is not None:
                waiting.timer.cancel()

    def _report(self, upper: str) -> None:
        self._waiting[upper].is_long = True
        for notify in self._listeners:
            notify(upper)

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


class _Waiting:
    """The waiting keys of one upper cluster, with their callbacks; `is_long` once they have been waiting for FULL."""

    __slots__ = ("is_long", "keys", "timer")

    def __init__(self) -> None:
        self.keys: dict[Key, Callable[[Key], None]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.is_long = False
