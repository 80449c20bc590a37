"""Writes for one key in several clusters at once, so that a slow cluster does not delay the others.

A write that takes longer continues in the background; when it ends, its key is requeued.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, TypeVar

from hansa.model.pair import Key
from hansa.runtime import tasks

R = TypeVar("R")
log = logging.getLogger(__name__)
PATIENCE = 0.25  # seconds; a write usually takes a few milliseconds


class Fanout(Generic[R]):
    """Calls `ended` with the result of work that continued in the background, None after an unexpected exception."""

    def __init__(self, ended: Callable[[Key, R | None], None]) -> None:
        self._ended = ended
        self._running: set[asyncio.Task[R]] = set()

    async def run(
        self, key: Key, work: Mapping[str, Coroutine[Any, Any, R]], in_flight: set[tuple[Key, str]]
    ) -> list[R]:
        """The results that came in time. Work that continues is in `in_flight` until it ends."""
        running = {cluster: asyncio.create_task(one) for cluster, one in work.items()}
        if not running:
            return []
        try:
            await asyncio.wait(running.values(), timeout=PATIENCE)
        finally:
            for cluster, task in running.items():
                if not task.done():
                    in_flight.add((key, cluster))
                    self._running.add(task)
                    task.add_done_callback(functools.partial(self._end, (key, cluster), in_flight))
        return [task.result() for task in running.values() if task.done()]

    async def close(self) -> None:
        """Cancel work in the background."""
        await tasks.cancel(*self._running)

    def _end(self, where: tuple[Key, str], in_flight: set[tuple[Key, str]], task: asyncio.Task[R]) -> None:
        self._running.discard(task)
        in_flight.discard(where)
        if task.cancelled():
            return
        if error := task.exception():
            extra = {"key": where[0], "cluster": where[1]}
            log.error("write failed unexpectedly, retrying", exc_info=error, extra=extra)
            self._ended(where[0], None)
        else:
            self._ended(where[0], task.result())
