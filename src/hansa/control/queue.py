"""The work queue: each key at most once, one worker per key, fair between groups, with delays and back-off.

A key is a request to reconcile, not an event. Running reconciles, and handling their outcome, is left to `controller`.
"""

import asyncio
import collections
import logging
import random as randomness
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from hansa.control import delays, fair_lanes
from hansa.runtime import backoff, clock, errors, metrics

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)
# Keys of a group in progress at once; all backlogs together get half of it. With fewer, a small group would wait.
WIDTH = 16
CALM = 0.25  # seconds without a reconcile after which a queue is not busy any more
UNREADABLE = "unreadable"  # the group of keys for which no group can be computed, such as of malformed objects
RETRIES = backoff.Backoff(first=0.005, factor=2.0, most=300.0, jitter=0.1)


class Queue(Generic[K]):
    """Keys to reconcile, at most `width` of a group at once; the first `credit` keys of an idle group go first.

    `group` is called once for each key that is added; a key without a group (None) is dropped. If `group` raises, the
    key is in the group UNREADABLE: its reconcile raises too, and is retried with back-off.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        group: Callable[[K], Hashable | None] = lambda _: "",
        weight: Callable[[Hashable], float] = lambda _: 1.0,
        server: Callable[[Hashable], Hashable] = lambda _: "",
        retries: backoff.Backoff = RETRIES,
        width: int = WIDTH,
        credit: float = 16.0,
    ) -> None:
        self.name = name
        self._clock, self._random, self._retries = clock, random, retries
        self._group = group
        self._lanes: fair_lanes.Lanes[K] = fair_lanes.Lanes(weight, server=server, width=width, credit=credit)
        self._delays = delays.Delays(self.add, clock=clock)
        self._dirty: dict[K, tuple[float, Hashable]] = {}  # when it was added, and its group
        self._working: dict[K, float] = {}
        self._last_done = -CALM
        self._failures: dict[K, int] = {}
        self._getters: collections.deque[asyncio.Future[None]] = collections.deque()
        self._is_turn_given = False
        self._is_closed = False
        self._measure(metrics)

    def __len__(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._lanes)

    @property
    def is_busy(self) -> bool:
        """Whether keys wait or are being reconciled, or were a moment ago."""
        return bool(self._working or self._lanes) or self._clock.now() - self._last_done < CALM

    def add(self, key: K) -> None:
        """Enqueue the key; if it is being reconciled, it is reconciled once more afterwards."""
        if self._is_closed or key in self._dirty:
            return
        if (group := self._group_of(key)) is None:
            self._failures.pop(key, None)
            return
        self._dirty[key] = (self._clock.now(), group)
        self._adds.inc()
        if key not in self._working:
            self._lanes.push(key, group)
            self._give_turn()

    def add_after(self, key: K, seconds: float) -> None:
        """Enqueue the key after so many seconds; it may be enqueued earlier by another call."""
        if seconds <= 0:
            self.add(key)
        elif not self._is_closed:
            self._delays.add(key, seconds)

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Count a failure of the key and enqueue it after its back-off; returns the delay in seconds."""
        self._failures[key] = self._failures.get(key, 0) + 1
        delay = max(at_least, self._retries.delay(self._failures[key], self._random))
        self._retried.inc()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the back-off of the key."""
        self._failures.pop(key, None)

    async def get(self) -> K | None:
        """The next key, which no other worker gets until `done`; None when the queue is closed."""
        while not self._is_closed:
            await self._turn()
            if self._lanes.is_ready and not self._is_closed:
                return self._take()
        return None

    def done(self, key: K) -> None:
        """The worker has finished the key. If it was added meanwhile, it is enqueued again."""
        began = self._working.pop(key, None)
        if began is None:
            raise errors.HansaError(f"queue {self.name}: {key} is done, but was not taken")
        self._last_done = self._clock.now()
        self._work.observe(self._last_done - began)
        self._lanes.release(key)
        if key in self._dirty:
            self._lanes.push(key, self._dirty[key][1])
        self._give_turn()

    def narrow(self, key: K) -> None:
        """A reconcile in progress is slow: fewer keys of its group are reconciled at once from now on."""
        self._lanes.narrow(key)

    def close(self) -> None:
        """Accept and return no more keys: workers end after their current reconcile."""
        self._is_closed = True
        self._delays.clear()
        for end in self._end_gauges:
            end()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _group_of(self, key: K) -> Hashable | None:
        # An exception belongs to its key: `add` is called by timers, by the audit and by watches, which serve all keys.
        try:
            return self._group(key)
        except Exception as error:
            log.debug("group of key not computed", exc_info=error, extra={"queue": self.name, "key": key})
            return UNREADABLE

    def _take(self) -> K:
        key = self._lanes.pop()
        now = self._clock.now()
        self._latency.observe(now - self._dirty.pop(key)[0])
        self._working[key] = now
        self._give_turn()
        return key

    async def _turn(self) -> None:
        # One key per iteration of the event loop: reconciles that never await then block neither the watches nor keys
        # of other groups that arrive meanwhile and should go before a backlog.
        loop = asyncio.get_running_loop()
        getter = loop.create_future()
        self._getters.append(getter)
        loop.call_soon(self._give_turn)
        try:
            await getter
            self._is_turn_given = False
        except asyncio.CancelledError:
            if not getter.cancelled():  # this getter had its turn; the next one gets it
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
