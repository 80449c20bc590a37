"""The work queue: keys, each at most once, never with two workers on one key, fair between groups, later if asked.

A key is a request to look, not an event. Doing the work, and judging its outcome, is left to the controller.
"""

import asyncio
import collections
import random as randomness
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from hansa.control import delays, fair_lanes
from hansa.runtime import backoff, clock, errors, metrics

K = TypeVar("K", bound=Hashable)
# Keys of a group in work at once, half of it for all backlogs: fewer would make a small group itself wait.
WIDTH = 16
CALM = 0.25  # seconds without work after which a queue is not busy any more
RETRIES = backoff.Backoff(first=0.005, factor=2.0, most=300.0, jitter=0.1)


class Queue(Generic[K]):
    """Keys to work on, at most `width` of a group at once; an idle group has `credit` keys before the others."""

    def __init__(
        self,
        name: str,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        group: Callable[[K], Hashable] = lambda _: "",
        weight: Callable[[Hashable], float] = lambda _: 1.0,
        server: Callable[[Hashable], Hashable] = lambda _: "",
        retries: backoff.Backoff = RETRIES,
        width: int = WIDTH,
        credit: float = 16.0,
    ) -> None:
        self.name = name
        self._clock, self._random, self._retries = clock, random, retries
        self._lanes = fair_lanes.Lanes(group, weight, server=server, width=width, credit=credit)
        self._delays = delays.Delays(self.add, clock=clock)
        self._dirty: dict[K, float] = {}
        self._working: dict[K, float] = {}
        self._last_done = -CALM
        self._failures: dict[K, int] = {}
        self._getters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._is_turn_given = False
        self._is_closed = False
        self._measure(metrics)

    def __len__(self) -> int:
        """How many keys wait for a worker."""
        return len(self._lanes)

    @property
    def is_busy(self) -> bool:
        """Whether there is work, or was a moment ago."""
        return bool(self._working or self._lanes) or self._clock.now() - self._last_done < CALM

    def add(self, key: K) -> None:
        """Have the key looked at: soon, and after now even if a worker is on it."""
        if self._is_closed or key in self._dirty:
            return
        self._dirty[key] = self._clock.now()
        self._adds.inc()
        if key not in self._working:
            self._lanes.push(key)
            self._give_turn()

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key looked at in so many seconds, or before if something else asks for it."""
        if seconds <= 0:
            self.add(key)
        elif not self._is_closed:
            self._delays.add(key, seconds)

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Count a failure of the key and have it looked at after the back-off, which is the answer."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._retries.delay(self._failures[key], self._random))
        self._retried.inc()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key is well: its next failure is its first."""
        self._failures.pop(key, None)

    async def get(self) -> K | None:
        """The next key, which belongs to the caller until `done`; None when the queue is closed."""
        while not self._is_closed:
            await self._turn()
            if self._lanes.is_ready and not self._is_closed:
                return self._take()
        return None

    def done(self, key: K) -> None:
        """The worker's hands are off the key. If it was added meanwhile, it waits again."""
        began = self._working.pop(key, None)
        if began is None:
            raise errors.HansaError(f"queue {self.name}: {key} is done, but nobody worked on it")
        self._last_done = self._clock.now()
        self._work.observe(self._last_done - began)
        self._lanes.release(key)
        if key in self._dirty:
            self._lanes.push(key)
        self._give_turn()

    def close(self) -> None:
        """Take no more keys and hand out none: workers end when they have done what they hold."""
        self._is_closed = True
        self._delays.clear()
        for end in self._end_gauges:
            end()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _take(self) -> K:
        key = self._lanes.pop()
        now = self._clock.now()
        self._latency.observe(now - self._dirty.pop(key))
        self._working[key] = now
        self._give_turn()
        return key

    async def _turn(self) -> None:
        # There is one turn in a pass of the loop: work that never waits then holds up nobody, neither the watches nor
        # a key that comes now and should go before a backlog.
        loop = asyncio.get_running_loop()
        getter = loop.create_future()
        self._getters.append(getter)
        loop.call_soon(self._give_turn)
        try:
            await getter
            self._is_turn_given = False
        except asyncio.CancelledError:
            if not getter.cancelled():  # it was our turn, and is another's now
                self._is_turn_given = False
                self._give_turn()
            raise

    def _give_turn(self) -> None:
        while self._getters and self._lanes.is_ready and not self._is_turn_given:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                self._is_turn_given = True

    def _measure(self, registry: metrics.Registry) -> None:
        name, of = self.name, ["queue"]
        self._adds = registry.counter("hansa_queue_adds_total", "Keys added to the queue.", labels=of).labels(name)
        self._retried = registry.counter(
            "hansa_queue_retries_total", "Keys requeued after a failure.", labels=of
        ).labels(name)
        self._latency = registry.histogram("hansa_queue_wait_seconds", "Time from add to a worker.", labels=of).labels(
            name
        )
        self._work = registry.histogram("hansa_queue_work_seconds", "Time of a reconcile.", labels=of).labels(name)
        depth = registry.gauge("hansa_queue_depth", "Keys waiting for a worker.", labels=["queue", "group"])
        delayed = registry.gauge("hansa_queue_delayed", "Keys queued for later.", labels=of)
        working = registry.gauge("hansa_queue_working", "Keys being reconciled.", labels=of)
        oldest = registry.gauge(
            "hansa_queue_longest_work_seconds", "Age of the longest running reconcile.", labels=of, combine=max
        )
        self._end_gauges = (
            depth.read(lambda: {(name, str(group)): count for group, count in self._lanes.depths().items()}),
            delayed.read(lambda: {(name,): len(self._delays)}),
            working.read(lambda: {(name,): len(self._working)}),
            oldest.read(lambda: {(name,): self._clock.now() - min(self._working.values(), default=self._clock.now())}),
        )
