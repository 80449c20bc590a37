"""Whether a cache can be believed: it had a full list, and its watch is not silent for longer than we have patience.

Unknown is not absent: who finds nothing in a cache that is not known may draw no conclusion.
"""

import asyncio
import logging
from collections.abc import Callable

from hansa.runtime import clock, errors, listeners

log = logging.getLogger(__name__)


class Unlisted(errors.HansaError):
    """The first full list did not come in time."""


class Freshness:
    """The state of one cache. `patience` is in seconds."""

    def __init__(self, name: str, *, clock: clock.Clock, patience: float) -> None:
        self._name, self._clock, self._patience = name, clock, patience
        self._complete = asyncio.Event()
        self._silent_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._was_known = False
        self._listeners: listeners.Listeners[Callable[[bool], None]] = listeners.Listeners()
        self.trouble = "it has not been listed yet"
        self.is_forbidden = False  # the server refuses to show it (403), which says nothing of other resources

    @property
    def is_complete(self) -> bool:
        """Whether there was a full list."""
        return self._complete.is_set()

    @property
    def is_known(self) -> bool:
        """Whether what is not there can be said to be absent."""
        silence = 0.0 if self._silent_since is None else self._clock.now() - self._silent_since
        return self.is_complete and silence < self._patience

    async def wait_complete(self, deadline: float) -> None:
        """Wait for the first full list, so many seconds."""
        try:
            async with asyncio.timeout(deadline):
                await self._complete.wait()
        except TimeoutError:
            raise Unlisted(f"no list of {self._name} in {deadline:g} s: {self.trouble}") from None

    def listen(self, notify: Callable[[bool], None]) -> Callable[[], None]:
        """Call `notify` whenever `is_known` or `is_forbidden` changes. The answer ends it."""
        return self._listeners.add(notify)

    def complete(self) -> None:
        """There was a full list."""
        self._complete.set()
        self.resume()

    def resume(self) -> None:
        """The watch told something."""
        if self._silent_since is not None:
            log.info("a watch goes on", extra={"store": self._name})
        self._silent_since = None
        self.trouble, self.is_forbidden = "", False
        self._look()

    def interrupt(self, trouble: str, *, is_forbidden: bool = False) -> None:
        """The watch is broken: what is known is believed for a while."""
        was_forbidden, self.is_forbidden, self.trouble = self.is_forbidden, is_forbidden, trouble
        if self._silent_since is None:
            log.warning("a watch is interrupted", extra={"store": self._name, "error": trouble})
            self._silent_since = self._clock.now()
            self._look()
        if was_forbidden != is_forbidden:
            self._notify()

    def close(self) -> None:
        """Nobody asks any more."""
        self._cancel_timer()

    def _look(self) -> None:
        self._cancel_timer()
        if self.is_known and self._silent_since is not None:
            rest = self._patience - (self._clock.now() - self._silent_since)
            self._timer = asyncio.get_running_loop().call_later(rest, self._look)
        if self.is_known != self._was_known:
            self._was_known = self.is_known
            self._notify()

    def _notify(self) -> None:
        for notify in self._listeners:
            notify(self.is_known)

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None
