"""How many objects, and how many bytes, the caches of one cluster may keep, of one that is not trusted.

Stores share budgets. Content that exceeds one is outlined; reading it again is left to readers. An object whose outline
exceeds one is an error, since a cache without it would not show what the cluster has.
"""

from dataclasses import dataclass

from hansa.kube import errors, objects

MIB = 1024 * 1024
IDENTITY = 1024  # characters of what an outline keeps; the API allows 253 for a name


@dataclass(slots=True)
class OutlineBudget:
    """How many objects the caches may have: of each one, at least an outline stays."""

    most: int
    used: int = 0
    is_exceeded: bool = False

    def has_room(self, obj: objects.Object, used: int) -> bool:
        """Whether an object may be added to so many."""
        fits = used < self.most
        self.is_exceeded = self.is_exceeded or not fits
        return fits and obj.identity_size <= IDENTITY

    def check(self, obj: objects.Object, used: int) -> None:
        """Raise Unreachable if an object may not be added."""
        if not self.has_room(obj, used):
            raise errors.Unreachable(
                f"the cluster has more than {self.most} objects of the kinds that are cached"
                if obj.identity_size <= IDENTITY
                else f"a name, uid or version of an object has more than {IDENTITY} characters: {obj.name[:60]}…"
            )


@dataclass(slots=True)
class ContentBudget:
    """A budget in bytes, and how many are used. Exceeded from the first object without room until half is free."""

    most: float
    outlines: OutlineBudget | None = None
    used: int = 0
    is_exceeded: bool = False
    is_strict: bool = False  # content that exceeds it is an error: readers cannot read it again

    def fitting(self, obj: objects.Object, *, besides: int = 0) -> objects.Object:
        """The object, or its outline if there is no room for it; `besides` are bytes that will be free then."""
        if self.has_room(obj, besides=besides):
            return obj
        self.is_exceeded = True
        if self.is_strict:
            raise errors.Unreachable(f"the objects that are cached have more than {self.most / MIB:.0f} MiB")
        return obj.outlined()

    def has_room(self, obj: objects.Object, *, besides: int = 0) -> bool:
        """Whether the content of an object fits; `besides` are bytes that will be free then."""
        return self.used - besides + obj.memory <= self.most

    def move(self, before: int, after: int) -> None:
        """Bytes of one object changed."""
        self.used += after - before
        if after < before and self.used < self.most / 2:
            self.is_exceeded = False


def content(obj: objects.Object | None) -> int:
    """The bytes of an object that count: those of its content, unless it was left out."""
    return obj.memory if obj is not None and obj.is_whole else 0
