"""How fast changes of one cluster are applied: one that is not trusted can send any number, and others share the loop.

A token bucket; waiting is left to the informer. Without a pace, changes are applied as they arrive.
"""

from dataclasses import dataclass

from hansa.kube import watching

RATE = 2000.0  # units per second: about a fifth of a core, and what 300 pods a second need
BURST = 20_000.0  # units at once: the first lists of a large tenant
UNIT_BYTES = 16_384  # of an object that counts as one unit more
TURN = 20  # changes of one watch in a row; a tenant has a watch for each kind


@dataclass(slots=True)
class Pace:
    """The pace of all watches of one cluster."""

    rate: float = RATE
    burst: float = BURST
    _spent: float = 0.0
    _at: float = 0.0

    def spend(self, change: watching.Change) -> None:
        """Count a change."""
        self._spent += 1
        if isinstance(change, watching.Added | watching.Modified | watching.Deleted):
            self._spent += change.obj.size // UNIT_BYTES

    def delay(self, now: float) -> float:
        """The seconds to wait before the next change is applied."""
        self._spent = max(0.0, self._spent - (now - self._at) * self.rate)
        self._at = now
        return max(0.0, self._spent - self.burst) / self.rate
