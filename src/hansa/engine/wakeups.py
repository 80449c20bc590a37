"""Keys that wait for a topic, such as an object, a cluster or quota: when it changes, they are requeued.

Correctness does not depend on it: a key that still has to wait is added again by its next reconcile, and the audit
requeues all keys.
"""

import itertools
from collections.abc import Callable, Hashable

from hansa.model.pair import Key


class Wakeups:
    """The waiting keys by topic. A key is dropped when it is requeued."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self.wake = wake
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def put(self, key: Key, *, until: Hashable) -> None:
        """Requeue the key when this topic changes."""
        self._keys.setdefault(until, {})[key] = None

    def forget(self, cluster: str) -> None:
        """Drop all keys of an upper cluster that is gone."""
        for topic, keys in tuple(self._keys.items()):
            for key in [key for key in keys if key.cluster == cluster]:
                del keys[key]
            if not keys:
                del self._keys[topic]

    def keys(self, until: Hashable) -> list[Key]:
        """The keys that wait for a topic."""
        return list(self._keys.get(until, ()))

    def notify(self, topic: Hashable, *, at_most: int | None = None) -> None:
        """A topic changed: requeue the keys that wait for it, or those that have waited longest."""
        keys = self._keys.get(topic)
        if keys is None:
            return
        woken = list(itertools.islice(keys, at_most))
        for key in woken:
            del keys[key]
        if not keys:
            del self._keys[topic]
        for key in woken:
            self.wake(key)
