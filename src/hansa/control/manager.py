"""The whole program's life: parts start, fail and start again alone, become ready, and end in good order.

On SIGTERM what is in hand is finished within a grace, then the rest is cancelled. What parts do is left to them.
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
    """Runs parts: `serve` for those that always run, `work` for those that only the leader runs and that end first.

    `grace` is how many seconds the work in hand has at the end, `flush` how many the served parts have after it.
    `when_ready` is called once, when all parts that were there at the start are ready.
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

    def serve(self, part: Component) -> None:
        """Run a part from the start, or from now on, to the end."""
        self._served.join(part)

    def work(self, part: Component) -> None:
        """Run a part while this process leads; without an election, always."""
        self._workers.join(part)

    async def remove(self, part: Component) -> None:
        """End a part whose subject has left."""
        self._unready.discard(part)
        await self._served.leave(part)
        await self._workers.leave(part)

    def stop(self) -> None:
        """Begin the end, as SIGTERM does; a second time: don't wait for what is in hand."""
        if self._stop.is_set():
            self._workers.cancel_soon()
        self._stop.set()

    def troubles(self) -> list[str]:
        """Why the program is not ready, a sentence each; none if it is."""
        is_up = self._is_announced and not self._stop.is_set()
        waiting = [f"{part.name} is not ready" for part in self._unready]
        return waiting if is_up else [*waiting, "the program starts or ends"]

    async def run(self, lead: Lead = _always) -> None:
        """Run until stopped. `lead`, such as an election's, runs the work when it may."""
        with self._signals():
            async with self.supervisor:
                self._served.start()
                leading = self.supervisor.start("election", lambda: lead(self._work))
                await self._stop.wait()
                log.info("ends", extra={"grace": self._grace})
                await self._workers.finish(self._grace)
                await tasks.cancel(leading)
                await self._served.finish(self._flush)

    async def _work(self) -> None:
        self._workers.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._workers.cancel()

    def _start(self, part: Component) -> asyncio.Task[None]:
        self._unready.add(part)
        self.supervisor.start("readiness", lambda: self._await_ready(part), component=part.name)
        return self.supervisor.start(part.name, part.run)

    async def _await_ready(self, part: Component) -> None:
        try:
            await part.ready()
        except errors.HansaError as error:
            # One dead cluster must not keep the program from serving the others.
            log.warning("goes on without being ready", extra={"part": part.name, "error": str(error)})
        self._unready.discard(part)
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
