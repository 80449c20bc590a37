"""Whether an API server answers: it is asked every few seconds, and has a short time to say that it is well.

A watch that is silent looks like one that has nothing to tell; this tells the two apart. Reactions are left to others.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from hansa.kube import client, errors
from hansa.runtime import clock, listeners

log = logging.getLogger(__name__)
PERIOD = 3.0  # seconds from one question to the next …
SECOND_LOOK = 0.5  # … and after a first failure, which can be bad luck
DEADLINE = 3.0  # seconds for an answer: an API server under load is slow, but not that slow
LATE = 0.5  # seconds more than that, and it is this process that has no time
FAILURES = 2  # in a row, until a server that answered before counts as unreachable


class Health:
    """The health of one API server; `trouble` is why it cannot be reached, empty while it can.

    `answered` is when something was answered last, or when we began to ask.
    """

    def __init__(self, client: client.Client, *, clock: clock.Clock, period: float = PERIOD) -> None:
        self._client, self._clock, self._period = client, clock, period
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self._failures = FAILURES - 1  # who never answered has no credit
        self._is_suspected, self._hurry = False, asyncio.Event()
        self.trouble = "it has not answered yet"
        self.answered = clock.now()

    @property
    def is_reachable(self) -> bool:
        return not self.trouble

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` whenever `trouble` changes. The answer ends it."""
        return self._listeners.add(notify)

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            await self.look()
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SECOND_LOOK if 0 < self._failures < FAILURES else self._period):
                    await self._hurry.wait()

    def suspect(self) -> None:
        """An answer is overdue: ask now. That counts as a first failure until something is answered."""
        if not self._is_suspected:
            self._is_suspected = True
            self._hurry.set()

    def trust(self) -> None:
        """Something was answered."""
        self._is_suspected, self.answered = False, self._clock.now()

    async def look(self) -> None:
        """Ask once."""
        began = self._clock.now()
        try:
            await self._client.request("GET", "/readyz", doing="ask whether the server is well", deadline=DEADLINE)
        except errors.ApiError as error:
            if self._clock.now() - began > DEADLINE + LATE:
                return  # we were late ourselves, and its answer may wait behind ours: that says nothing of the server
            self._failures += 1
            if self._failures + self._is_suspected >= FAILURES:
                self._become(str(error))
        else:
            self._failures = 0
            self.trust()
            self._become("")

    def _become(self, trouble: str) -> None:
        if trouble == self.trouble:
            return
        if bool(trouble) != bool(self.trouble):
            log.log(
                logging.WARNING if trouble else logging.INFO,
                "a cluster cannot be reached" if trouble else "a cluster can be reached",
                extra={"client": repr(self._client), "trouble": trouble},
            )
        self.trouble = trouble
        for notify in self._listeners:
            notify()
