"""Parts of a program that begin and end together, and can join or leave in between."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

from hansa.runtime import tasks


async def _at_once() -> None:
    """Ready from the beginning."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Component:
    """One piece of the program. `drain` makes `run` return soon; without it, the part is cancelled at the end.

    `ready` returns when the part does what it is there for; what it raises as expected is told, and waits no longer.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    drain: Callable[[], None] | None = None
    ready: Callable[[], Awaitable[None]] = _at_once


class ComponentGroup:
    """Parts, each of which fails and starts again alone."""

    def __init__(self, start: Callable[[Component], asyncio.Task[None]]) -> None:
        self._start_part = start
        self._parts: dict[Component, asyncio.Task[None] | None] = {}
        self._is_on = False

    def join(self, part: Component) -> None:
        """Add a part; it runs if the crew does."""
        self._parts[part] = self._start_part(part) if self._is_on else None

    async def leave(self, part: Component) -> None:
        """End a part and forget it; one that is not here is fine."""
        if task := self._parts.pop(part, None):
            await tasks.cancel(task)

    def start(self) -> None:
        """Begin, also again."""
        self._is_on = True
        for part in self._parts:
            self._parts[part] = self._start_part(part)

    async def finish(self, seconds: float) -> None:
        """Let every part finish what it has in hand; what takes longer is cancelled."""
        running = {part: task for part, task in self._parts.items() if task and not task.done()}
        for part, task in running.items():
            if part.drain:
                part.drain()
            else:
                task.cancel()
        if running:
            await asyncio.wait(running.values(), timeout=seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """End every part now."""
        self._is_on = False
        self.cancel_soon()
        if running := self._running():
            await asyncio.wait(running)

    def cancel_soon(self) -> None:
        """Ask every part to end now."""
        for task in self._running():
            task.cancel()

    def _running(self) -> list[asyncio.Task[None]]:
        return [task for task in self._parts.values() if task and not task.done()]
