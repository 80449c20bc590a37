"""Bound pods that were deleted without waiting for their copy: their copy is deleted without a grace period, too.

A pod that is not bound yet is also gone at once, but not by force: its copy may run, and ends with its own grace
period. Once the upper pod is gone both look alike, so this is remembered. Without it, as after a restart, the copy gets
its own grace period.
"""

import functools
from collections.abc import Callable
from typing import Final

from hansa.control.merged_store import Cache
from hansa.kube.objects import Object
from hansa.model import placement

MOST: Final = 4096  # force-deleted pods whose copies are not gone yet; of more, the oldest get their grace period
FEW: Final = 8  # of pods whose copies are gone, that are kept until all are checked again


class ForcedDeletions:
    """The uids of such pods of one upper cluster."""

    def __init__(self) -> None:
        self._uids: dict[str, Callable[[], bool]] = {}  # whether the pod still has a copy
        self._most = FEW

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def watch(self, cache: Cache, has_copy: Callable[[Object], bool]) -> Callable[[], None]:
        """Note the pods of a cache that vanish while they have a copy. The returned function ends it."""

        def changed(version: _Version) -> None:
            before = version.obj
            now = cache.get(before.key)
            if (now is None or now.uid != before.uid) and placement.node_of(before) and has_copy(before):
                self._add(before.uid, functools.partial(has_copy, before))

        return cache.listen(changed, _versions)

    def _add(self, uid: str, has_copy: Callable[[], bool]) -> None:
        self._uids[uid] = has_copy
        if len(self._uids) > self._most:
            kept = [(uid, still) for uid, still in self._uids.items() if still()]
            self._uids = dict(kept[-MOST:])
            self._most = 2 * len(self._uids) + FEW  # so that all checks together take linear time


class _Version:
    """One version of an object, hashed by identity."""

    __slots__ = ("obj",)

    def __init__(self, obj: Object) -> None:
        self.obj = obj


def _versions(obj: Object) -> tuple[_Version]:
    return (_Version(obj),)
