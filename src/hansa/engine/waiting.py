"""Keys that wait for something, by what they wait for. When it comes, they are looked at again, and only they.

Nothing depends on it being remembered: who still has to wait says so at the next look, and the audit looks at all.
"""

import itertools
from collections.abc import Callable, Hashable

from hansa.model.pair import Key


class Waiting:
    """Who waits for what. Who is woken is forgotten."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self.wake = wake
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def put(self, key: Key, *, until: Hashable) -> None:
        """The key waits for this."""
        self._keys.setdefault(until, {})[key] = None

    def forget(self, cluster: str) -> None:
        """An upper cluster is gone: nothing of it waits any more."""
        for what, keys in tuple(self._keys.items()):
            for key in [key for key in keys if key.cluster == cluster]:
                del keys[key]
            if not keys:
                del self._keys[what]

    def keys(self, until: Hashable) -> list[Key]:
        """Who waits for this."""
        return list(self._keys.get(until, ()))

    def come(self, what: Hashable, *, at_most: int | None = None) -> None:
        """This has come, or has changed; wake who waits for it, or those of them who have waited longest."""
        keys = self._keys.get(what)
        if keys is None:
            return
        woken = list(itertools.islice(keys, at_most))
        for key in woken:
            del keys[key]
        if not keys:
            del self._keys[what]
        for key in woken:
            self.wake(key)
