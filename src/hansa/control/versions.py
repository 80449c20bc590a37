"""Compares resourceVersions, which are numbers since Kubernetes 1.35, and tracks the version that a watch has reached.

Used by `store`: answers to writes race with watch events; either order gives the same state, and deletions stay.
"""

import math

from hansa.kube import objects

DIGITS = 20  # of a 64-bit number; Python refuses to convert thousands of them


def number(version: str) -> float:
    """A resourceVersion as a number; NaN, which is neither newer nor older than any, if it is not one."""
    is_number = version.isascii() and version.isdecimal() and len(version) <= DIGITS
    return int(version) if is_number else math.nan


def is_newer(one: objects.Object, other: objects.Object) -> bool:
    """Whether `one` is certainly a later state than `other`."""
    return number(one.version) > number(other.version)


class History:
    """The version that the watch has reached, and the objects that are gone although the watch has not reported it."""

    def __init__(self) -> None:
        self._reached: float = 0
        self._gone: dict[str, float] = {}  # by uid: the version up to which its states are outdated

    def reach(self, version: str) -> None:
        """The watch has delivered all events up to this version."""
        self._reached = max(self._reached, number(version))

    def is_ahead(self, obj: objects.Object) -> bool:
        """Whether this state is newer than what the watch has delivered; if not, the cache has a newer one."""
        return number(obj.version) > self._reached and not self.is_before_deletion(obj)

    def mark_gone(self, uid: str, until: float = math.inf) -> None:
        """The object is gone for good, or left the scope of the cache with version `until`."""
        self._gone[uid] = until

    def is_before_deletion(self, obj: objects.Object) -> bool:
        """Whether this state is older than the deletion of the object."""
        return number(obj.version) <= self._gone.get(obj.uid, -math.inf)

    def forget(self, uid: str) -> None:
        """The watch has delivered the deletion of the object."""
        self._gone.pop(uid, None)

    def restart(self, version: str, uids: set[str]) -> bool:
        """A full list with these objects is complete. True if it is older than the watch: etcd was restored, say."""
        is_rollback = number(version) < self._reached
        self._reached = 0 if is_rollback else self._reached
        self.reach(version)
        self._gone = {} if is_rollback else {uid: until for uid, until in self._gone.items() if uid in uids}
        return is_rollback
