"""Groups of components that start and stop together; components can be added and removed while a group runs."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

from hansa.runtime import tasks


async def _ready_at_once() -> None:
    """The default of `Component.ready`."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A component of a program. `drain` makes `run` return soon; without it, the component is cancelled at the end.

    `ready` returns when the component is ready. If it raises an expected error, the program does not wait any longer.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    drain: Callable[[], None] | None = None
    ready: Callable[[], Awaitable[None]] = _ready_at_once


class ComponentGroup:
    """Components that are started by `start`, each as a task of its own."""

    def __init__(self, start: Callable[[Component], asyncio.Task[None]]) -> None:
        self._start_component = start
        self._tasks: dict[Component, asyncio.Task[None] | None] = {}
        self._is_running = False

    def add(self, component: Component) -> None:
        """Add a component; it is started if the group runs."""
        self._tasks[component] = self._start_component(component) if self._is_running else None

    async def remove(self, component: Component) -> None:
        """Cancel and remove a component, if it is in the group."""
        if task := self._tasks.pop(component, None):
            await tasks.cancel(task)

    def start(self) -> None:
        """Start all components; allowed again after `finish` or `cancel`."""
        self._is_running = True
        for component in self._tasks:
            self._tasks[component] = self._start_component(component)

    async def finish(self, seconds: float) -> None:
        """Drain all components; those that still run after so many seconds are cancelled."""
        running = {component: task for component, task in self._tasks.items() if task and not task.done()}
        for component, task in running.items():
            if component.drain:
                component.drain()
            else:
                task.cancel()
        if running:
            await asyncio.wait(running.values(), timeout=seconds)
        await self.cancel()

    async def cancel(self) -> None:
        """Cancel all components and wait until they have ended."""
        self._is_running = False
        self.cancel_soon()
        if running := self._running():
            await asyncio.wait(running)

    def cancel_soon(self) -> None:
        """Cancel all components without waiting."""
        for task in self._running():
            task.cancel()

    def _running(self) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks.values() if task and not task.done()]
