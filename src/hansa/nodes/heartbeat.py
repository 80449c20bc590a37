"""When a virtual node writes: its lease often, its status when it changes but not all the time, and now and then."""

import math
import random as randomness
from dataclasses import dataclass

SPREAD = 0.1  # the share by which periods vary, so that many nodes of one process don't write at the same moment


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: kubelets have the same, so that the upper cluster treats both alike."""

    lease: int = 40  # for how long a renewal is believed
    renew: float = 10.0  # from one renewal to the next
    report: float = 300.0  # at most from one status to the next, also when nothing changes
    pause: float = 1.0  # at least from one status to the next, whatever changes
    first_facts: float = 10.0  # for a lower cluster to be listed, before its silence is told as a trouble


class Heartbeat:
    """The times of one node, by the clock of its caller."""

    def __init__(self, timing: Timing, random: randomness.Random) -> None:
        self._timing, self._random = timing, random
        self._beat = self._report = self._told = -math.inf

    def is_beat_due(self, now: float) -> bool:
        """Whether the lease has to be renewed."""
        return now >= self._beat

    def is_report_due(self, now: float) -> bool:
        """Whether the status has to be told although nothing changed."""
        return now >= self._report

    def rest(self, now: float) -> float:
        """Seconds until a status may be written; 0 if it may."""
        return max(0.0, self._told + self._timing.pause - now)

    def wait(self, now: float) -> float:
        """Seconds until something is due if nothing changes."""
        return max(0.0, min(self._beat, self._report) - now)

    def beaten(self, now: float) -> None:
        """The lease was renewed. The second time comes anywhere in the first period."""
        is_first = self._beat == -math.inf
        self._beat = now + self._timing.renew * self._random.uniform(0.0 if is_first else 1 - SPREAD, 1.0)

    def told(self, now: float) -> None:
        """The status was written."""
        self._told = now
        self._report = now + self._timing.report * self._random.uniform(1 - SPREAD, 1.0)
