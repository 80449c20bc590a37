"""Whether a cache is current: it had its first full list, and its watch is not interrupted for too long.

Unknown is not absent: an object that is missing in a cache that is not known may exist.
"""

import asyncio
import logging
from collections.abc import Callable

from hansa.runtime import clock, errors, listeners

log = logging.getLogger(__name__)


class Unlisted(errors.HansaError):
    """The first full list did not complete before the deadline."""


class Freshness:
    """The freshness of one cache, which is still known `patience` seconds after its watch was interrupted."""

    def __init__(self, name: str, *, clock: clock.Clock, patience: float) -> None:
        self._name, self._clock, self._patience = name, clock, patience
        self._synced = asyncio.Event()
        self._interrupted_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._was_known = False
        self._listeners: listeners.Listeners[Callable[[bool], None]] = listeners.Listeners()
        self.error = "not listed yet"
        self.is_forbidden = False  # 403: other resources of the cluster are not affected

    @property
    def has_synced(self) -> bool:
        """Whether the first full list is complete."""
        return self._synced.is_set()

    @property
    def is_known(self) -> bool:
        """Whether an object that is missing in the cache is absent in the cluster."""
        age = 0.0 if self._interrupted_at is None else self._clock.now() - self._interrupted_at
        return self.has_synced and age < self._patience

    async def wait_synced(self, deadline: float) -> None:
        """Wait for the first full list; raises `Unlisted` after `deadline` seconds."""
        try:
            async with asyncio.timeout(deadline):
                await self._synced.wait()
        except TimeoutError:
            raise Unlisted(f"{self._name} not listed within {deadline:g} s: {self.error}") from None

    def listen(self, notify: Callable[[bool], None]) -> Callable[[], None]:
        """Call `notify` whenever `is_known` or `is_forbidden` changes. The returned function removes it."""
        return self._listeners.add(notify)

    def synced(self) -> None:
        """A full list is complete."""
        self._synced.set()
        self.resume()

    def resume(self) -> None:
        """The watch delivers events again."""
        if self._interrupted_at is not None:
            log.info("watch resumed")
        self._interrupted_at = None
        self.error, self.is_forbidden = "", False
        self._check()

    def interrupt(self, error: str, *, is_forbidden: bool = False) -> None:
        """The watch is interrupted: the cache stays known for `patience` seconds."""
        was_forbidden, self.is_forbidden, self.error = self.is_forbidden, is_forbidden, error
        if self._interrupted_at is None:
            log.warning("watch interrupted", extra={"error": error})  # cluster and resource are bound by the informer
            self._interrupted_at = self._clock.now()
            self._check()
        if was_forbidden != is_forbidden:
            self._notify()

    def close(self) -> None:
        """Stop the timer; the cache is not used any more."""
        self._cancel_timer()

    def _check(self) -> None:
        self._cancel_timer()
        if self.is_known and self._interrupted_at is not None:
            rest = self._patience - (self._clock.now() - self._interrupted_at)
            self._timer = asyncio.get_running_loop().call_later(rest, self._check)
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
