"""Watching a resource for ever: a full state, then every change to it, over any number of broken connections.

What comes is a stream of values, trouble included; keeping a cache of them is left to others.

    Restarted                a full list follows: what the listener knows may be out of date
    Added …                  its objects
    Synced(version)          the list is complete: what was not in it since Restarted is gone
    Added, Modified, Deleted changes, in the server's order
    Bookmark(version)        nothing else happened up to this version
    Interrupted(error)       no news for now; what is known stays known, and the watch goes on by itself

A broken connection goes on from the last version, without Restarted. After a compaction comes Restarted again, so a
listener that drops at Synced what was not listed sees exactly the differences, deletions included.
"""

import msgspec

from hansa.kube.errors import ApiError
from hansa.kube.objects import Object


class Restarted(msgspec.Struct, frozen=True, gc=False):
    """A full list follows."""


class Added(msgspec.Struct, frozen=True, gc=False):
    """An object is there: a new one, or one of the full list."""

    obj: Object


class Modified(msgspec.Struct, frozen=True, gc=False):
    """An object changed."""

    obj: Object


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object is gone, or no longer matches the selectors; it is shown in its last state."""

    obj: Object


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The full list is complete."""

    version: str


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """All up to this version has been told."""

    version: str


class Interrupted(msgspec.Struct, frozen=True):
    """The watch is broken and is tried again in `retry_in` seconds."""

    error: ApiError
    retry_in: float


Change = Restarted | Added | Modified | Deleted | Synced | Bookmark | Interrupted
