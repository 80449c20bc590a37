"""Objects that are changed back after each write, such as by a webhook: their next write waits.

Without a limit, one such object would be written as often as its API server answers. Used by the syncer; what is
written, and whether, is left to the decision.
"""

import asyncio
import collections

from hansa.model.pair import Key
from hansa.runtime import clock

MOST = 20  # writes of one object in a period; a status changes a few times in a row, such as at a pod's start
PERIOD = 10.0  # seconds
SHORTEST = 0.1  # seconds of a delay: the timer that ends a period may be late


class Contested:
    """Counts the writes of each object in a period, which begins with a write. Nothing is kept after it."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._since = 0.0
        self._writes: collections.Counter[tuple[Key, str]] = collections.Counter()

    def delay(self, key: Key, cluster: str) -> float:
        """Count a write in a cluster; the seconds to wait if there were too many, and it must not be sent now."""
        if not self._writes:
            self._since = self._clock.now()
            asyncio.get_running_loop().call_later(PERIOD, self._writes.clear)
        if self._writes[key, cluster] >= MOST:
            return max(SHORTEST, PERIOD - (self._clock.now() - self._since))
        self._writes[key, cluster] += 1
        return 0.0


def message(key: Key, cluster: str, delay: float) -> str:
    """Why a write waits, for users."""
    where = "here" if cluster == key.cluster else f"in {cluster}"
    return (
        f"it was written {MOST} times in {PERIOD:g} s {where}, the next write is in {delay:.0f} s; find out what"
        " changes it back, such as a webhook or a controller"
    )
