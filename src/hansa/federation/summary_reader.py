"""The newest ClusterSummary of a target that was read, at a pace that a target cannot choose.

An agent publishes once a second. A target that changes its summary all the time, or makes it large, must not take the
time of the others: versions that come meanwhile are skipped, and a slow read is followed by a longer pause.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from hansa.federation.summaries import TargetSummary
from hansa.kube.objects import Object
from hansa.runtime import clock

PAUSE: Final = 0.5  # seconds between two reads
SHARE: Final = 20.0  # times the duration of a read: so much longer is the pause


class SummaryReader:
    """Reads versions of one summary with `read`, and calls `changed` after each."""

    def __init__(
        self, read: Callable[[Object], TargetSummary], changed: Callable[[], None], *, clock: clock.Clock
    ) -> None:
        self._read, self._changed, self._clock = read, changed, clock
        self.summary, self.version = TargetSummary(), ""
        self._newest: Object | None = None
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def offer(self, summary: Object | None) -> None:
        """There is another version, or no summary: read it, or wait for the end of the pause."""
        self._newest = summary
        left = self._next - self._clock.now()
        if left <= 0:
            self._take()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(left, self._take)

    def close(self) -> None:
        """Read no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _take(self) -> None:
        self.close()
        began, summary = self._clock.now(), self._newest
        self.summary = TargetSummary() if summary is None else self._read(summary)
        self.version = "" if summary is None else summary.version
        now = self._clock.now()
        self._next = now + max(PAUSE, SHARE * (now - began))
        self._changed()
