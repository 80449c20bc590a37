"""Keys that wait for a topic, such as an object, a cluster or quota: when it changes, they are requeued.

Correctness does not depend on it: a key that still has to wait is added again by its next reconcile, and the audit
requeues all keys.
"""

import contextlib
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator

from hansa.model.pair import Key


class Wakeups:
    """The waiting keys by topic. A key is dropped when it is requeued. The length is the number of keys that wait."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self.wake = wake
        self._keys: dict[Hashable, dict[Key, None]] = {}
        self._topics: dict[Key, dict[Hashable, None]] = {}

    def __len__(self) -> int:
        return len(self._topics)

    def put(self, key: Key, *, until: Hashable) -> None:
        """Requeue the key when this topic changes."""
        self._keys.setdefault(until, {})[key] = None
        self._topics.setdefault(key, {})[until] = None

    @contextlib.contextmanager
    def renewed(self, key: Key) -> Iterator[None]:
        """Reconcile the key inside: afterwards it waits only for what it was put for inside, in its former position.

        Most topics never change, such as the name of an object that is never created: keys would wait for them forever.
        """
        before = self._topics.pop(key, ())
        try:
            yield
        finally:
            now = self._topics.get(key, ())
            self._drop(key, [topic for topic in before if topic not in now])

    def forget_key(self, key: Key) -> None:
        """Drop a key whose object is gone."""
        self._drop(key, self._topics.pop(key, ()))

    def forget(self, cluster: str) -> None:
        """Drop all keys of an upper cluster that is gone."""
        for key in [key for key in self._topics if key.cluster == cluster]:
            self.forget_key(key)

    def keys(self, until: Hashable) -> list[Key]:
        """The keys that wait for a topic."""
        return list(self._keys.get(until, ()))

    def notify(self, topic: Hashable, *, at_most: int | None = None) -> None:
        """A topic changed: requeue the keys that wait for it, or those that have waited longest."""
        woken = list(itertools.islice(self._keys.get(topic, ()), at_most))
        for key in woken:
            self._drop(key, (topic,))
            if (topics := self._topics.get(key)) is not None:
                topics.pop(topic, None)
                if not topics:
                    del self._topics[key]
        for key in woken:
            self.wake(key)

    def _drop(self, key: Key, topics: Iterable[Hashable]) -> None:
        for topic in topics:
            if (keys := self._keys.get(topic)) is not None:
                keys.pop(key, None)
                if not keys:
                    del self._keys[topic]
