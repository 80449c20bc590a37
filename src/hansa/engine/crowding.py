"""A queue that all share below, such as the scheduler's: each upper cluster has only a few objects in it at once.

Whoever is served first there, the queue stays short, so the order in which we let objects in is the order for all.
"""

import collections
import contextlib
from collections.abc import Callable, Iterator

from hansa.control.store import Store
from hansa.model.pair import Key

QUEUEING = "queueing"  # the index of a lower cache by the upper cluster whose objects wait
MOST = 64  # objects of all upper clusters together; enough that the queue is never empty while more are wanted …
LEAST = 4  # … and of each of them, however many they are


class Line:
    """Those of one upper cluster who wait to be let into the queue of one lower cluster, in the order of their coming.

    Whoever is looked at keeps its place while it has to wait; nobody who comes later goes before.
    """

    def __init__(self, cache: Store, upper: str) -> None:
        self._cache, self._upper = cache, upper
        self._keys: collections.OrderedDict[Key, None] = collections.OrderedDict()
        self._coming = 0

    @property
    def is_full(self) -> bool:
        """Whether the upper cluster has its share of the queue, with those that are on their way there."""
        share = max(LEAST, MOST // max(1, self._cache.spread(QUEUEING)))
        return len(self._cache.find(QUEUEING, self._upper)) + self._coming >= share

    def lets_in(self, key: Key) -> bool:
        """Whether it is this key's turn; if not, it waits."""
        if self.is_full or next(iter(self._keys), key) != key:
            self._keys.setdefault(key)
            return False
        self.leave(key)
        return True

    def leave(self, key: Key) -> None:
        """The key has nothing to wait for here."""
        self._keys.pop(key, None)

    def next(self, is_meant: Callable[[Key], bool]) -> Key | None:
        """Whose turn it is, if there is room; who comes before and is not meant any more, has left."""
        while self._keys and not self.is_full:
            key = next(iter(self._keys))
            if is_meant(key):
                return key
            self.leave(key)
        return None

    @contextlib.contextmanager
    def coming(self) -> Iterator[None]:
        """One is on its way, while the caller stays inside."""
        self._coming += 1
        try:
            yield
        finally:
            self._coming -= 1
