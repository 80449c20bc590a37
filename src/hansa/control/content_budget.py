"""How many bytes of objects the caches of one cluster may keep: a cluster that is not trusted can store any number.

Stores share a budget; what exceeds it is outlined. Reading the content again is left to readers.
"""

from dataclasses import dataclass

from hansa.kube import objects


@dataclass(slots=True)
class ContentBudget:
    """A budget in bytes, and how many are used. It is exceeded from an outlined object on until half of it is free."""

    most: float
    used: int = 0
    is_exceeded: bool = False

    def fitting(self, obj: objects.Object, *, besides: int = 0) -> objects.Object:
        """The object, or its outline if there is no room for it; `besides` are bytes that will be free then."""
        if self.used - besides + obj.memory <= self.most:
            return obj
        self.is_exceeded = True
        return obj.outlined()

    def move(self, before: int, after: int) -> None:
        """Bytes of one object changed."""
        self.used += after - before
        if after < before and self.used < self.most / 2:
            self.is_exceeded = False


def content(obj: objects.Object | None) -> int:
    """The bytes of an object that count: those of its content, unless it was left out."""
    return obj.memory if obj is not None and obj.is_whole else 0
