"""Upper objects whose copy was refused by a lower cluster, so that objects that wait for them can report why.

The syncer records the result of each reconcile. Who waits for an object is left to `wakeups`.
"""

from collections.abc import Mapping

from hansa.model.pair import Key


class Refusals:
    """The last refusal of each object in each lower cluster, as a message."""

    def __init__(self) -> None:
        self._messages: dict[Key, Mapping[str, str]] = {}

    def of(self, key: Key, cluster: str) -> str:
        """Why the copy of an object was refused in a cluster; empty if it was not."""
        return self._messages.get(key, {}).get(cluster, "")

    def update(self, key: Key, messages: Mapping[str, str]) -> bool:
        """Record the refusals of an object, by cluster; whether they changed."""
        if self._messages.get(key, {}) == messages:
            return False
        if messages:
            self._messages[key] = dict(messages)
        else:
            del self._messages[key]
        return True

    def forget(self, cluster: str) -> None:
        """A lower cluster was unlinked."""
        for key, messages in tuple(self._messages.items()):
            if cluster in messages:
                self.update(key, {name: text for name, text in messages.items() if name != cluster})
