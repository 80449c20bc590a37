"""A supervised task for each item of a changing set, such as the routes of a registry."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from hansa.engine.registry import Routes
from hansa.runtime import tasks

T = TypeVar("T")


async def maintain(
    task: str,
    wanted: Callable[[], Mapping[str, T]],
    run: Callable[[T], Awaitable[None]],
    registry: Routes,
    *,
    supervisor: tasks.Supervisor,
    field: str = "cluster",
) -> None:
    """Run one task for each item, by name, and compare again whenever the registry changes, until cancelled.

    The task of an item that changed is cancelled and started again. `field` is the log field with the item's name.
    """
    running: dict[str, tuple[T, asyncio.Task[None]]] = {}
    changed = asyncio.Event()
    end = registry.listen(changed.set)
    try:
        while True:
            changed.clear()
            now = dict(wanted())
            leaving = [name for name, (one, _) in running.items() if name not in now or now[name] != one]
            await tasks.cancel(*(running.pop(name)[1] for name in leaving))
            for name, one in now.items():
                if name not in running:
                    running[name] = one, supervisor.start(task, _begin(run, one), **{field: name})
            await changed.wait()
    finally:
        end()
        await tasks.cancel(*(task for _, task in running.values()))


def _begin(run: Callable[[T], Awaitable[None]], one: T) -> Callable[[], Awaitable[None]]:
    return lambda: run(one)
