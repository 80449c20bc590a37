"""What is newer: resourceVersions as numbers (so they are since Kubernetes 1.35), and how far a watch has told.

With it an answer to a write and the watch, which race, lead to the same state, and no deletion is undone by older news.
"""

import math

from hansa.kube import objects


def number(version: str) -> float:
    """A resourceVersion as a number; NaN, which is neither newer nor older than any, if it is not one."""
    return int(version) if version.isdecimal() else math.nan


def is_newer(one: objects.Object, other: objects.Object) -> bool:
    """Whether `one` is certainly a later state than `other`."""
    return number(one.version) > number(other.version)


class History:
    """How far the watch has told, and which objects left before it tells so."""

    def __init__(self) -> None:
        self._reached: float = 0
        self._left: dict[str, float] = {}  # by uid: up to which version it is known to be away

    def reach(self, version: str) -> None:
        """The watch has told everything up to this version."""
        self._reached = max(self._reached, number(version))

    def is_ahead(self, obj: objects.Object) -> bool:
        """Whether the watch has still to tell of this state; if not, the watch knows better."""
        return number(obj.version) > self._reached and not self.has_left(obj)

    def leave(self, uid: str, until: float = math.inf) -> None:
        """The object is away: for good, or as of a version."""
        self._left[uid] = until

    def has_left(self, obj: objects.Object) -> bool:
        """Whether this state is from before the object left."""
        return number(obj.version) <= self._left.get(obj.uid, -math.inf)

    def forget(self, uid: str) -> None:
        """The watch has told that the object is away."""
        self._left.pop(uid, None)

    def restart(self, version: str, uids: set[str]) -> bool:
        """A full list with these objects was told. Whether it is a step back: the server lost a part of its past."""
        is_step_back = number(version) < self._reached
        self._reached = 0 if is_step_back else self._reached
        self.reach(version)
        self._left = {} if is_step_back else {uid: until for uid, until in self._left.items() if uid in uids}
        return is_step_back
