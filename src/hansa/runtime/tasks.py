"""Supervised tasks, which are counted and restarted with back-off when they fail, and limited concurrency.

The order in which tasks start and stop is left to `control.manager`.
"""

import asyncio
import logging
import random as randomness
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from hansa.runtime import backoff, clock, errors, logs, metrics

log = logging.getLogger(__name__)
T = TypeVar("T")
R = TypeVar("R")
RESTARTS = backoff.Backoff(first=0.1, factor=2.0, most=30.0, jitter=0.2)


class Supervisor:
    """Owns tasks. Leaving `async with` cancels all of them."""

    def __init__(
        self,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        restarts: backoff.Backoff = RESTARTS,
    ) -> None:
        self._clock, self._random, self._restarts = clock, random, restarts
        self._failures = metrics.counter(
            "hansa_task_failures_total", "Failures of background tasks, each restarted.", labels=["task"]
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self, name: str, run: Callable[[], Awaitable[None]], **fields: object) -> asyncio.Task[None]:
        """Run a task until it returns, and restart it whenever it fails. Cancel the returned task to stop it.

        `name` labels a metric and so is constant; `fields`, such as the cluster, are in every log line of the task.
        """
        with logs.only(**fields):  # the new task takes a copy of the context
            task = asyncio.create_task(self._supervise(name, run), name=" ".join(map(str, (name, *fields.values()))))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel all tasks and wait until they have ended."""
        await cancel(*self._tasks)

    async def _supervise(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        failures = 0
        while True:
            began = self._clock.now()
            if await self._run_once(name, run):
                return
            # The back-off starts over after a long run without failures.
            failures = 1 if self._clock.now() - began > self._restarts.most else failures + 1
            await self._clock.sleep(self._restarts.delay(failures, self._random))

    async def _run_once(self, name: str, run: Callable[[], Awaitable[None]]) -> bool:
        try:
            await run()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled: it awaited a task that was, which is a failure.
            log.exception("task awaited a cancelled task, restarting", extra={"task": name})
        except errors.HansaError as error:
            log.warning("task failed, restarting", extra={"task": name, "error": str(error)})
        except Exception:
            log.exception("task failed unexpectedly, restarting", extra={"task": name})
        else:
            return True
        self._failures.labels(name).inc()
        return False


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks and wait until they have ended; their results and exceptions are ignored."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def gather(work: Callable[[T], Awaitable[R]], items: Iterable[T], *, at_most: int) -> list[R]:
    """The results for all items, in their order; at most so many are worked on at a time."""
    slots = asyncio.Semaphore(at_most)

    async def one(item: T) -> R:
        async with slots:
            return await work(item)

    return list(await asyncio.gather(*map(one, items)))
