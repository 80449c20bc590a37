"""A task for each of a changing set of things: begun when one comes, ended when it goes, begun again when it fails."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from hansa.engine.registry import Routes
from hansa.runtime import tasks

T = TypeVar("T")


async def tend(
    wanted: Callable[[], Iterable[T]],
    run: Callable[[T], Awaitable[None]],
    registry: Routes,
    *,
    supervisor: tasks.Supervisor,
) -> None:
    """Run one task for each thing that is wanted, and look again whenever the registry changes. Until cancelled.

    One that is not the same any more ends, and begins as it is now.
    """
    running: list[tuple[T, asyncio.Task[None]]] = []
    changed = asyncio.Event()
    end = registry.listen(changed.set)
    try:
        while True:
            changed.clear()
            now = list(wanted())
            leaving = [task for one, task in running if one not in now]
            running = [(one, task) for one, task in running if one in now]
            await tasks.cancel(*leaving)
            known = [one for one, _ in running]
            running += [(one, supervisor.start(str(one), _begin(run, one))) for one in now if one not in known]
            await changed.wait()
    finally:
        end()
        await tasks.cancel(*(task for _, task in running))


def _begin(run: Callable[[T], Awaitable[None]], one: T) -> Callable[[], Awaitable[None]]:
    return lambda: run(one)
