"""Clusters that hold slices or pods and are not joined: closed at first, and lost after the timeout.

A deleted Secret, or a Cluster that was deleted by mistake, must not start pods a second time elsewhere: only the clock
or `hansa leave` says that a cluster is lost. The clusters that are joined are left to `pool_clusters`.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Final

from hansa.runtime import clock
from hansa.scheduling.slicing.pool import Member, State

_REASON: Final = "not joined: its Cluster or its Secret is missing"


class AbsentClusters:
    """The states of clusters that are not joined; `notify` gets the name of each that becomes lost.

    `loss_timeout` gives the seconds until a cluster is lost. They count from `start`, from when it was joined or
    reported as reachable last, or from its loss of the Cluster. Names are also given by tenants: none is kept that was
    not joined, for longer than the timeout.
    """

    def __init__(
        self, *, clock: clock.Clock, loss_timeout: Callable[[str], float], notify: Callable[[str], None]
    ) -> None:
        self._clock, self._loss_timeout, self._notify = clock, loss_timeout, notify
        self._started = clock.now()
        self._last_seen: dict[str, float] = {}
        self._left: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Begin to count: before, no cluster could join."""
        self._started = self._clock.now()

    def close(self) -> None:
        """Cancel the timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    @property
    def closed(self) -> Collection[str]:
        """The clusters that are named by slices or pods, and are not lost yet."""
        return tuple(self._timers)

    def see(self, name: str) -> None:
        """A cluster was joined until now, or another process reports that it reaches it."""
        self._last_seen[name] = self._clock.now()

    def leave(self, name: str) -> None:
        """`hansa leave` removed it: it is lost at once."""
        self._left.add(name)

    def join(self, name: str) -> None:
        """It is joined again."""
        self._left.discard(name)
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def state(self, name: str) -> tuple[State, str]:
        """Its state, and the reason. A closed one is notified about when it becomes lost."""
        rest = 0.0 if name in self._left else self._rest(name)
        if rest <= 0:
            return State.LOST, "not in the pool"
        if name not in self._timers:
            self._timers[name] = asyncio.get_running_loop().call_later(rest, self._expire, name)
        return State.CLOSED, _REASON

    def members(self, names: Iterable[str]) -> dict[str, Member]:
        """Those that are not lost, for planning: their capacity is unknown."""
        states = {name: self.state(name) for name in names}
        return {
            name: Member(name, {}, state=state, reason=reason)
            for name, (state, reason) in states.items()
            if state is not State.LOST
        }

    def _rest(self, name: str) -> float:
        since = max(self._started, self._last_seen.get(name, self._started))
        return since + self._loss_timeout(name) - self._clock.now()

    def _expire(self, name: str) -> None:
        del self._timers[name]
        if self.state(name)[0] is State.LOST:  # else it was reported meanwhile, and has a new timer
            self._notify(name)
