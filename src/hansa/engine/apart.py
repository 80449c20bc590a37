"""Work for one key in several clusters, of which none waits for another longer than a moment.

What takes longer goes on here, with an owner; the key is told when it ends.
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
MOMENT = 0.25  # seconds; an answer takes a few milliseconds


class Apart(Generic[R]):
    """`ended` is told the result of what went on, None if it failed in a way that nobody expects."""

    def __init__(self, ended: Callable[[Key, R | None], None]) -> None:
        self._ended = ended
        self._running: set[asyncio.Task[R]] = set()

    async def run(
        self, key: Key, work: Mapping[str, Coroutine[Any, Any, R]], under_way: set[tuple[Key, str]]
    ) -> list[R]:
        """The results that came in a moment. Where work goes on is put into `under_way`, and taken away at its end."""
        running = {cluster: asyncio.create_task(one) for cluster, one in work.items()}
        if not running:
            return []
        try:
            await asyncio.wait(running.values(), timeout=MOMENT)
        finally:
            for cluster, task in running.items():
                if not task.done():
                    under_way.add((key, cluster))
                    self._running.add(task)
                    task.add_done_callback(functools.partial(self._end, (key, cluster), under_way))
        return [task.result() for task in running.values() if task.done()]

    async def close(self) -> None:
        """End what goes on."""
        await tasks.cancel(*self._running)

    def _end(self, where: tuple[Key, str], under_way: set[tuple[Key, str]], task: asyncio.Task[R]) -> None:
        self._running.discard(task)
        under_way.discard(where)
        if task.cancelled():
            return
        if error := task.exception():
            log.error("failed unexpectedly and is tried again", exc_info=error, extra={"key": where[0]})
            self._ended(where[0], None)
        else:
            self._ended(where[0], task.result())
