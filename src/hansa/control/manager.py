"""Runs the components of a program: starts and restarts them, reports readiness, and shuts them down in order.

On SIGTERM, reconciles in progress have a grace period; what still runs after it is cancelled.
"""

import asyncio
import contextlib
import logging
import random as randomness
import signal
from collections.abc import Awaitable, Callable, Iterator

from hansa.control import components
from hansa.control.components import Component
from hansa.runtime import clock, errors, metrics, tasks

__all__ = ["Component", "Manager"]

log = logging.getLogger(__name__)
SIGNALS = (signal.SIGTERM, signal.SIGINT)
Lead = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]


async def _always(work: Callable[[], Awaitable[None]]) -> None:
    await work()


class Manager:
    """Runs components: those of `serve` always, those of `work` only while this process leads; these end first.

    At the end, workers have `grace` seconds to drain, and served components `flush` seconds after that. `when_ready` is
    called once, when all components are ready for the first time.
    """

    def __init__(
        self,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        grace: float = 25.0,
        flush: float = 3.0,
        when_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.supervisor = tasks.Supervisor(clock=clock, random=random, metrics=metrics)
        self._grace, self._flush, self._when_ready = grace, flush, when_ready
        self._served, self._workers = components.ComponentGroup(self._start), components.ComponentGroup(self._start)
        self._unready: set[Component] = set()
        self._is_announced = False
        self._stop = asyncio.Event()

    def serve(self, component: Component) -> None:
        """Run a component until the program ends, whether or not this process leads."""
        self._served.add(component)

    def work(self, component: Component) -> None:
        """Run a component while this process leads; without an election, always."""
        self._workers.add(component)

    async def remove(self, component: Component) -> None:
        """Cancel and remove a component, such as that of a cluster that was removed."""
        self._unready.discard(component)
        await self._served.remove(component)
        await self._workers.remove(component)

    def stop(self) -> None:
        """Shut down, as on SIGTERM; a second call cancels the workers without grace."""
        if self._stop.is_set():
            self._workers.cancel_soon()
        self._stop.set()

    def not_ready(self) -> list[str]:
        """The reasons why the program is not ready; empty if it is."""
        waiting = [f"{component.name} is not ready" for component in self._unready]
        if self._stop.is_set():
            return [*waiting, "the program is shutting down"]
        return waiting if self._is_announced else [*waiting, "the program is starting"]

    async def run(self, lead: Lead = _always) -> None:
        """Run until stopped. `lead`, such as `Election.lead`, runs the workers while this process leads."""
        with self._signals():
            async with self.supervisor:
                self._served.start()
                leading = self.supervisor.start("election", lambda: lead(self._work))
                await self._stop.wait()
                log.info("shutting down", extra={"grace": self._grace})
                await self._workers.finish(self._grace)
                await tasks.cancel(leading)
                await self._served.finish(self._flush)

    async def _work(self) -> None:
        self._workers.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._workers.cancel()

    def _start(self, component: Component) -> asyncio.Task[None]:
        self._unready.add(component)
        self.supervisor.start("readiness", lambda: self._await_ready(component), component=component.name)
        return self.supervisor.start(component.name, component.run)

    async def _await_ready(self, component: Component) -> None:
        try:
            await component.ready()
        except errors.HansaError as error:
            # One unreachable cluster must not keep the program from serving the others.
            log.warning("continuing without readiness", extra={"component": component.name, "error": str(error)})
        self._unready.discard(component)
        if not self._unready and not self._is_announced:
            self._is_announced = True
            self._when_ready()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
