"""Pairs whose copy needs no write: while neither side changes, the desired copy is not computed again.

Correctness does not depend on it: a pair that is not remembered is compared once more.
"""

import collections
from collections.abc import Callable, Mapping
from typing import TypeGuard

import msgspec

from hansa.kube.objects import Object
from hansa.model import pair
from hansa.model.mode import Mode
from hansa.model.pair import Grade, Key, Pair, Side, Unknown


class InSync:
    """Hashes of both sides of such pairs, by lower cluster. `selecting` is one of the objects that select a key's."""

    def __init__(self, mode: Mode, selecting: Callable[[Key], int]) -> None:
        self._mode, self._selecting = mode, selecting
        self._hashes: dict[str, dict[Key, int]] = collections.defaultdict(dict)

    def clusters(
        self, key: Key, upper: Object, lowers: Mapping[str, Side], grades: Mapping[str, Grade]
    ) -> frozenset[str]:
        """The clusters where nothing changed since the pair was in sync."""
        return frozenset(
            name
            for name, lower in lowers.items()
            if isinstance(lower, Object)
            and (known := self._hashes.get(name, {}).get(key)) is not None
            and known == self._hash(key, upper, lower, grades.get(name))
        )

    def update(self, decided: Pair, *, written: frozenset[str]) -> None:
        """A pair was decided: remember where nothing had to be written."""
        if tuple(self._mode.rules[decided.key.resource].computed_from(decided.key)):
            return  # those objects can change as well
        upper, grades = decided.upper, {} if isinstance(decided.intents, Unknown) else decided.intents
        for name, lower in decided.lowers.items():
            if name in written or not _is_alive(upper) or not _is_alive(lower):
                self._hashes[name].pop(decided.key, None)
            elif name not in decided.in_sync:
                self._hashes[name][decided.key] = self._hash(decided.key, upper, lower, grades.get(name))

    def forget_key(self, key: Key) -> None:
        """An object concerns no lower cluster."""
        for hashes in self._hashes.values():
            hashes.pop(key, None)

    def forget(self, cluster: str) -> None:
        """A lower cluster was unlinked."""
        self._hashes.pop(cluster, None)

    def _hash(self, key: Key, upper: Object, lower: Object, grade: Grade | None) -> int:
        status_down, both = self._mode.rules[key.resource].status_down, (upper, lower)
        synced = () if status_down is None else [msgspec.json.encode(status_down(one)) for one in both]
        return hash((grade, self._selecting(key), *map(pair.content, both), *synced))


def _is_alive(side: Side) -> TypeGuard[Object]:
    return isinstance(side, Object) and not side.is_deleting
