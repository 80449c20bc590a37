"""Workers that take keys from a queue and call the reconciler with each, under a deadline.

The reconciler compares actual and desired state of the object with that key; it is given by the caller.
"""

import asyncio
import dataclasses
import enum
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Generic, TypeVar

from hansa.control import queue
from hansa.control.freshness import Freshness
from hansa.kube import errors as api_errors
from hansa.runtime import errors, logs, metrics, tasks

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)
SLOW = 1.0  # seconds of a reconcile, after which another worker takes its place: a stalled server holds no worker


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """Reconciled: nothing to do until something changes."""


@dataclasses.dataclass(frozen=True, slots=True)
class After:
    """Requeue the key after so many seconds."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Terminal:
    """Cannot succeed until something changes: no retry."""

    reason: str


class OutcomeLabel(enum.StrEnum):
    """How a reconcile ended, as the label of a metric."""

    DONE = "done"
    AFTER = "after"
    TERMINAL = "terminal"
    ERROR = "error"
    DEADLINE = "deadline"


Outcome = Done | After | Terminal
Reconciler = Callable[[K], Awaitable[Outcome]]


class Controller(Generic[K]):
    """`workers` tasks on one queue. A key whose reconcile raises is counted and requeued with back-off.

    A slow reconcile narrows its group and does not count as a worker, unless there is only one: that one stays alone.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconciler[K],
        *,
        queue: queue.Queue[K],
        metrics: metrics.Registry,
        workers: int = 64,
        deadline: float = 60.0,
    ) -> None:
        self.name = name
        self._reconcile, self._queue, self._workers, self._deadline = reconcile, queue, workers, deadline
        reconciles = metrics.counter(
            "hansa_reconciles_total", "Reconciled keys, by outcome.", labels=["controller", "outcome"]
        )
        # Kept, because looking up a child costs more than counting.
        self._results = {result: reconciles.labels(name, result) for result in OutcomeLabel}
        self._begun: dict[K, float] = {}  # reconciles in progress that are not slow yet, the oldest first
        self._slow: set[K] = set()
        self._running = 0  # workers
        self._timer: asyncio.TimerHandle | None = None
        self._is_draining = asyncio.Event()

    async def run(self) -> None:
        """Reconcile until drained and the reconciles in progress are done."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for _ in range(self._workers):
                self._start_worker()
            try:
                await self._is_draining.wait()
            finally:  # also when cancelled: reconciles that are slow to end need no other worker
                self._stop_watching()

    async def synced(self, caches: Iterable[Freshness], *, within: float) -> bool:
        """Wait for the first lists of what reconciles read; false if drained before, so that a program ends at once."""

        async def synced() -> None:
            for cache in caches:
                await cache.wait_synced(within)

        lists = asyncio.create_task(synced(), name=self.name)
        drained = asyncio.create_task(self._is_draining.wait(), name=self.name)
        try:
            await asyncio.wait({lists, drained}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.cancel(lists, drained)
        if lists.cancelled():
            return False
        lists.result()  # raises what the lists raised
        return True

    def drain(self) -> None:
        """Start no new reconcile: `run` returns when those in progress are done."""
        self._queue.close()
        self._is_draining.set()

    def _start_worker(self) -> None:
        self._running += 1
        self._group.create_task(self._work(), name=self.name)

    async def _work(self) -> None:
        try:
            while self._running <= self._workers + len(self._slow) and (key := await self._queue.get()) is not None:
                self._begin(key)
                with logs.bound(controller=self.name, key=key):
                    await self._handle(key)
        finally:
            self._running -= 1

    def _begin(self, key: K) -> None:
        loop = asyncio.get_running_loop()
        self._begun[key] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(SLOW, self._watch)

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        """Replace the workers of slow reconciles; check again when the next one would be slow."""
        self._timer, loop = None, asyncio.get_running_loop()
        for key, began in tuple(self._begun.items()):
            if began + SLOW > loop.time():
                self._timer = loop.call_at(began + SLOW, self._watch)
                return
            del self._begun[key]
            self._queue.narrow(key)
            if self._workers > 1:
                self._slow.add(key)
                self._start_worker()

    async def _handle(self, key: K) -> None:
        try:
            async with asyncio.timeout(self._deadline) as timeout:
                outcome = await self._reconcile(key)
        except asyncio.CancelledError:
            self._queue.add(key)  # interrupted: the next worker or leader reconciles it again
            raise
        except Exception as error:
            self._failed(key, error, is_late=timeout.expired())
        else:
            self._settle(key, outcome)
        finally:
            self._begun.pop(key, None)
            self._slow.discard(key)
            self._queue.done(key)

    def _settle(self, key: K, outcome: Outcome) -> None:
        self._queue.forget(key)
        match outcome:
            case After(seconds):
                self._results[OutcomeLabel.AFTER].inc()
                self._queue.add_after(key, seconds)
            case Terminal(reason):
                self._results[OutcomeLabel.TERMINAL].inc()
                log.warning("reconcile failed, not retried until a change", extra={"reason": reason})
            case Done():
                self._results[OutcomeLabel.DONE].inc()

    def _failed(self, key: K, error: Exception, *, is_late: bool) -> None:
        self._results[OutcomeLabel.DEADLINE if is_late else OutcomeLabel.ERROR].inc()
        at_least = error.retry_after if isinstance(error, api_errors.Throttled) else 0.0
        delay = round(self._queue.retry(key, at_least=at_least), 3)
        if is_late:
            fields = {"deadline_seconds": self._deadline, "retry_in_seconds": delay}
            log.warning("reconcile exceeded its deadline", extra=fields)
        elif isinstance(error, errors.HansaError):
            log.warning("reconcile failed", extra={"error": str(error), "retry_in_seconds": delay})
        else:
            log.error("reconcile failed unexpectedly", exc_info=error, extra={"retry_in_seconds": delay})
