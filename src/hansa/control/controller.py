"""Workers that take keys from a queue and hand them to a reconciler, with a deadline for each.

A reconciler looks at the whole state behind a key and brings it nearer to what is wanted; it is left to others.
"""

import asyncio
import dataclasses
import enum
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from hansa.control import queue
from hansa.kube import errors as api_errors
from hansa.runtime import errors, logs, metrics

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """All is as it should be, until something changes."""


@dataclasses.dataclass(frozen=True, slots=True)
class After:
    """Look again in so many seconds, even if nothing changes."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Terminal:
    """It cannot succeed before something changes: no retry."""

    reason: str


class Result(enum.StrEnum):
    """How a reconcile ended, as the label of a metric."""

    DONE = "done"
    AFTER = "after"
    TERMINAL = "terminal"
    ERROR = "error"
    DEADLINE = "deadline"


Outcome = Done | After | Terminal
Reconciler = Callable[[K], Awaitable[Outcome]]


class Controller(Generic[K]):
    """`workers` tasks over one queue. What a reconciler raises is counted and tried again with back-off."""

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
        self._results = {result: reconciles.labels(name, result) for result in Result}

    async def run(self) -> None:
        """Work until the queue is closed and what is in hand is done."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    def drain(self) -> None:
        """Begin nothing new: `run` returns when what is in hand is done."""
        self._queue.close()

    async def _work(self) -> None:
        while (key := await self._queue.get()) is not None:
            with logs.bound(controller=self.name, key=key):
                await self._handle(key)

    async def _handle(self, key: K) -> None:
        try:
            async with asyncio.timeout(self._deadline) as timeout:
                outcome = await self._reconcile(key)
        except asyncio.CancelledError:
            self._queue.add(key)  # half done: whoever works next begins again
            raise
        except Exception as error:
            self._failed(key, error, is_late=timeout.expired())
        else:
            self._settle(key, outcome)
        finally:
            self._queue.done(key)

    def _settle(self, key: K, outcome: Outcome) -> None:
        self._queue.forget(key)
        match outcome:
            case After(seconds):
                self._results[Result.AFTER].inc()
                self._queue.add_after(key, seconds)
            case Terminal(reason):
                self._results[Result.TERMINAL].inc()
                log.warning("gave up until it changes", extra={"reason": reason})
            case Done():
                self._results[Result.DONE].inc()

    def _failed(self, key: K, error: Exception, *, is_late: bool) -> None:
        self._results[Result.DEADLINE if is_late else Result.ERROR].inc()
        at_least = error.retry_after if isinstance(error, api_errors.Throttled) else 0.0
        delay = round(self._queue.retry(key, at_least=at_least), 3)
        if is_late:
            log.warning("took too long and is tried again", extra={"deadline": self._deadline, "retry_in": delay})
        elif isinstance(error, errors.HansaError):
            log.warning("failed and is tried again", extra={"error": str(error), "retry_in": delay})
        else:
            log.error("failed unexpectedly and is tried again", exc_info=error, extra={"retry_in": delay})
