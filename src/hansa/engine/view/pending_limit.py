"""Limits the objects in a queue that all upper clusters share, such as the queue of a lower cluster's scheduler.

Each upper cluster has only a few objects in it at once. The queue stays short, so the order in which objects are let
into it is the order in which they are served.
"""

import collections
import contextlib
from collections.abc import Callable, Iterable, Iterator

from hansa.control.merged_store import Cache
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.pair import Key

BY_PENDING = "pending"  # the index of a lower cache by the upper cluster of pending objects
MOST = 64  # objects of all upper clusters together: enough that the queue is never empty while more are waiting …
LEAST = 4  # … and of each of them, however many they are


class PendingLimit:
    """The limits of one upper cluster in its lower ones, and the keys that wait because of them, oldest first."""

    def __init__(self, upper_id: str) -> None:
        self._upper_id = upper_id
        self._queues: dict[tuple[Resource, str], _Queue] = {}

    def add(
        self, resource: Resource, cluster: str, cache: Cache, pending_of: Callable[[Object], tuple[str, ...]]
    ) -> None:
        """Limit the pending objects of a resource in a lower cluster."""
        cache.index(BY_PENDING, pending_of)
        self._queues[resource, cluster] = _Queue(cache, self._upper_id)

    def remove(self, cluster: str) -> None:
        """A lower cluster was unlinked."""
        for resource, name in tuple(self._queues):
            if name == cluster:
                del self._queues[resource, name]

    def admits(self, key: Key, cluster: str) -> bool:
        """Whether an object may be created now: there is room, and no other key waits longer."""
        queue = self._queues.get((key.resource, cluster))
        return queue is None or (not queue.is_full and next(iter(queue.keys), key) == key)

    def update(self, key: Key, waiting: Iterable[str]) -> None:
        """A key waits for room in these clusters, and in no others. One that waits already keeps its position."""
        clusters = frozenset(waiting)
        for (resource, cluster), queue in self._queues.items():
            if resource == key.resource and cluster in clusters:
                queue.keys.setdefault(key)
            elif resource == key.resource:
                queue.keys.pop(key, None)

    def next(self, resource: Resource, is_waiting: Callable[[Key, str], bool]) -> Iterator[Key]:
        """The keys for which there is room, one per cluster. Those that no longer have to wait are dropped."""
        for (one, cluster), queue in self._queues.items():
            while one == resource and queue.keys and not queue.is_full:
                key = next(iter(queue.keys))
                if is_waiting(key, cluster):
                    yield key
                    break
                queue.keys.pop(key, None)

    @contextlib.contextmanager
    def creating(self, resource: Resource, clusters: Iterable[str]) -> Iterator[None]:
        """Count objects that are being created in these clusters, for as long as the caller stays inside."""
        queues = [queue for cluster in clusters if (queue := self._queues.get((resource, cluster))) is not None]
        for queue in queues:
            queue.creating += 1
        try:
            yield
        finally:
            for queue in queues:
                queue.creating -= 1


class _Queue:
    """One shared queue, seen from one upper cluster."""

    __slots__ = ("_cache", "_upper_id", "creating", "keys")

    def __init__(self, cache: Cache, upper_id: str) -> None:
        self._cache, self._upper_id = cache, upper_id
        self.keys: collections.OrderedDict[Key, None] = collections.OrderedDict()
        self.creating = 0

    @property
    def is_full(self) -> bool:
        """Whether the upper cluster uses its share, with the objects that are being created."""
        share = max(LEAST, MOST // max(1, self._cache.spread(BY_PENDING)))
        return len(self._cache.find(BY_PENDING, self._upper_id)) + self.creating >= share
