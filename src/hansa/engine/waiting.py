"""Keys that wait for something, by what they wait for. When it comes, they are looked at again, and only they."""

from collections.abc import Callable, Hashable

from hansa.model.pair import Key


class Waiting:
    """Who waits for what. It is forgotten when they are woken: who still has to wait says so again."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self.wake = wake
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def put(self, key: Key, *, until: Hashable) -> None:
        """The key waits for this."""
        self._keys.setdefault(until, {})[key] = None

    def keys(self, until: Hashable) -> list[Key]:
        """Who waits for this."""
        return list(self._keys.get(until, ()))

    def come(self, what: Hashable) -> None:
        """This may have come, or changed."""
        for key in self._keys.pop(what, ()):
            self.wake(key)
