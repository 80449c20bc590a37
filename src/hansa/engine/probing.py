"""Reachability of an API server: /readyz is requested every few seconds, with a short deadline.

The watch of an unreachable server looks like one without events, so caches and writes rely on this probe.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from hansa.kube import client, errors
from hansa.runtime import clock, listeners

log = logging.getLogger(__name__)
PERIOD = 3.0  # seconds between probes …
SECOND_PROBE = 0.5  # … and after a first failure, which may be transient
DEADLINE = 3.0  # seconds for an answer: an API server under load is slow, but not that slow
LATE = 0.5  # seconds beyond the deadline: then it is this process that is overloaded
FAILURES = 2  # in a row, until a server that answered before counts as unreachable


class ReachabilityProbe:
    """The reachability of one API server; `error` is why it is unreachable, empty while it is reachable.

    `answered` is when the last answer came, or when probing began. A server that another one replaced is never
    reachable again.
    """

    def __init__(self, cluster: str, client: client.Client, *, clock: clock.Clock, period: float = PERIOD) -> None:
        self._cluster, self._client, self._clock, self._period = cluster, client, clock, period
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self._failures = FAILURES - 1  # a server that never answered is unreachable at its first failure
        self._is_suspected, self._probe_now = False, asyncio.Event()
        self.is_replaced = False
        self.error = "no answer yet"
        self.answered = clock.now()

    @property
    def is_reachable(self) -> bool:
        return not self.error

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` whenever `error` changes. The returned function removes it."""
        return self._listeners.add(notify)

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.probe()
            self._probe_now.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SECOND_PROBE if 0 < self._failures < FAILURES else self._period):
                    await self._probe_now.wait()

    def suspect(self) -> None:
        """An answer is overdue: probe now. Until an answer comes, that counts as a first failure."""
        if not self._is_suspected:
            self._is_suspected = True
            self._probe_now.set()

    def mark_replaced(self, error: str) -> None:
        """It is not the server that it was: whatever it answers, it counts as unreachable."""
        self.is_replaced = True
        self._set_error(error)

    def trust(self) -> None:
        """An answer came."""
        self._is_suspected, self.answered = False, self._clock.now()

    async def probe(self) -> None:
        """Probe once."""
        if self.is_replaced:
            return
        began = self._clock.now()
        try:
            await self._client.request("GET", "/readyz", doing="probe the server", deadline=DEADLINE)
        except errors.ApiError as error:
            if self._clock.now() - began > DEADLINE + LATE:
                return  # this process was late itself, so the result means nothing
            self._failures += 1
            if self._failures + self._is_suspected >= FAILURES:
                self._set_error(str(error))
        else:
            self._failures = 0
            self.trust()
            self._set_error("")

    def _set_error(self, error: str) -> None:
        if error == self.error:
            return
        if bool(error) != bool(self.error):
            log.log(
                logging.WARNING if error else logging.INFO,
                "cluster unreachable" if error else "cluster reachable",
                extra={"cluster": self._cluster, "error": error} if error else {"cluster": self._cluster},
            )
        self.error = error
        for notify in self._listeners:
            notify()
