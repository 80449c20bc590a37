"""A task for each of a changing set of things: begun when one comes, ended when it goes, begun again when it fails."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from hansa.engine.registry import Routes
from hansa.runtime import tasks

K = TypeVar("K")


async def tend(
    wanted: Callable[[], Mapping[K, Callable[[], Awaitable[None]]]], registry: Routes, *, supervisor: tasks.Supervisor
) -> None:
    """Run what `wanted` says, by name, and look again whenever the registry changes. Until cancelled."""
    running: dict[K, asyncio.Task[None]] = {}
    changed = asyncio.Event()
    end = registry.listen(changed.set)
    try:
        while True:
            changed.clear()
            now = wanted()
            await tasks.cancel(*(running.pop(name) for name in set(running) - set(now)))
            for name, run in now.items():
                if name not in running:
                    running[name] = supervisor.start(str(name), run)
            await changed.wait()
    finally:
        end()
        await tasks.cancel(*running.values())
