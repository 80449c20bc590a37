"""When a virtual node renews its Lease and writes its status: at the same intervals as a kubelet."""

import math
import random as randomness
from dataclasses import dataclass

SPREAD = 0.1  # the fraction by which periods vary, so that the nodes of one process don't write at the same time


@dataclass(frozen=True, slots=True)
class Timing:
    """Intervals in seconds. The defaults are those of kubelets."""

    lease: int = 40  # leaseDurationSeconds
    renew: float = 10.0  # between renewals of the Lease
    report: float = 300.0  # the maximum between status writes, also if nothing changes
    pause: float = 1.0  # the minimum between status writes
    first_sync: float = 10.0  # for the first list of a lower cluster; then the node becomes NotReady


class Heartbeat:
    """The schedule of one node. Methods get the current time."""

    def __init__(self, timing: Timing, random: randomness.Random) -> None:
        self._timing, self._random = timing, random
        self._next_renewal = self._next_report = self._last_status = -math.inf

    def is_renewal_due(self, now: float) -> bool:
        """Whether the Lease must be renewed."""
        return now >= self._next_renewal

    def is_report_due(self, now: float) -> bool:
        """Whether the status must be written even if it is unchanged."""
        return now >= self._next_report

    def until_status_allowed(self, now: float) -> float:
        """Seconds until a status may be written; 0 if it may be now."""
        return max(0.0, self._last_status + self._timing.pause - now)

    def until_due(self, now: float) -> float:
        """Seconds until the next write if nothing changes."""
        return max(0.0, min(self._next_renewal, self._next_report) - now)

    def renewed(self, now: float) -> None:
        """Record a renewal of the Lease. The second one is at a random time in the first period."""
        is_first = self._next_renewal == -math.inf
        self._next_renewal = now + self._timing.renew * self._random.uniform(0.0 if is_first else 1 - SPREAD, 1.0)

    def status_written(self, now: float) -> None:
        """Record a write of the status."""
        self._last_status = now
        self._next_report = now + self._timing.report * self._random.uniform(1 - SPREAD, 1.0)
