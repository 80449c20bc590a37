"""Immutable objects by key, with indexes, and listeners that get the keys to reconcile after each change.

Listeners get keys, not events: they read the state when they reconcile. Filling the table is left to `store`.
"""

import logging
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar, cast

from hansa.kube import objects
from hansa.runtime import errors, listeners, metrics

K = TypeVar("K", bound=Hashable)
ValuesOf = Callable[[objects.Object], Iterable[Hashable]]
Notify = Callable[[Hashable], None]
GroupedAmounts = tuple[tuple[Hashable, tuple[int, ...]], ...]  # groups of an object, each with its amounts there
AmountsOf = Callable[[objects.Object], GroupedAmounts]
log = logging.getLogger(__name__)


def own_key(obj: objects.Object) -> tuple[objects.NamespacedName]:
    """The object's own key."""
    return (obj.key,)


class Index:
    """Keys by a value that is computed from the object."""

    __slots__ = ("keys", "values_of")

    def __init__(self, values_of: ValuesOf) -> None:
        self.values_of = values_of
        self.keys: dict[Hashable, dict[objects.NamespacedName, None]] = {}  # a dict as a set that keeps the order

    def move(
        self, key: objects.NamespacedName, before: Mapping[Hashable, None], after: Mapping[Hashable, None]
    ) -> None:
        """The values of a key changed."""
        for value in before:
            if value not in after:
                keys = self.keys[value]
                del keys[key]
                if not keys:
                    del self.keys[value]
        for value in after:
            self.keys.setdefault(value, {})[key] = None


class Total:
    """Sums over all objects of a table, by group. An object's amounts depend on nothing else, so that no sum drifts."""

    __slots__ = ("amounts_of", "sums")

    def __init__(self, amounts_of: AmountsOf) -> None:
        self.amounts_of = amounts_of
        self.sums: dict[Hashable, tuple[int, ...]] = {}

    def move(self, before: GroupedAmounts, after: GroupedAmounts) -> None:
        """The amounts of an object changed."""
        if before == after:
            return  # most changes are those of a status
        for sign, amounts in ((-1, before), (1, after)):
            for group, parts in amounts:
                sums = self.sums.get(group) or (0,) * len(parts)
                self.sums[group] = tuple(one + sign * part for one, part in zip(sums, parts, strict=True))
        for group, _ in before:
            if not any(self.sums[group]):
                del self.sums[group]


class Table:
    """Objects of one kind. Reads between two awaits are consistent; `snapshot` stays so for longer."""

    def __init__(self, name: str, *, cluster: str = "", resource: str = "", metrics: metrics.Registry) -> None:
        self.name, self.cluster, self.resource = name, cluster, resource
        self._objects: dict[objects.NamespacedName, objects.Object] = {}
        self._indexes: dict[str, Index] = {}
        self._totals: dict[str, Total] = {}
        self._listeners: listeners.Listeners[tuple[Notify, ValuesOf]] = listeners.Listeners()
        self._failures = metrics.counter(
            "hansa_listener_failures_total",
            "Exceptions in listeners and indexes of a cache.",
            labels=["cluster", "resource"],
        )

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[objects.NamespacedName]:
        return iter(self._objects)

    def get(self, key: objects.NamespacedName) -> objects.Object | None:
        """The object, if there is one."""
        return self._objects.get(key)

    def values(self) -> Iterable[objects.Object]:
        """All objects."""
        return self._objects.values()

    def snapshot(self) -> Mapping[objects.NamespacedName, objects.Object]:
        """All objects as they are now, unaffected by later changes; the table is copied, the objects are not."""
        return MappingProxyType(dict(self._objects))

    def index(self, name: str, values_of: ValuesOf) -> None:
        """Add an index: `values_of` gives the values under which an object is found. Adding it again has no effect."""
        if (found := self._indexes.get(name)) is None:
            index = self._indexes[name] = Index(values_of)
            for key, obj in self._objects.items():
                index.move(key, {}, self._values(values_of, obj))
        elif found.values_of != values_of:
            raise errors.HansaError(f"{self.name} already has another index {name}; rename one of them")

    def find(self, index: str, value: Hashable) -> list[objects.Object]:
        """The objects under a value of an index, in the order in which they were added."""
        return [self._objects[key] for key in self._indexes[index].keys.get(value, ())]

    def spread(self, index: str) -> int:
        """How many values of an index have objects."""
        return len(self._indexes[index].keys)

    def total(self, name: str, amounts_of: AmountsOf) -> None:
        """Keep sums of amounts of all objects, by group. Adding them again has no effect."""
        if name not in self._totals:
            total = self._totals[name] = Total(amounts_of)
            for obj in self._objects.values():
                total.move((), self._amounts(total, obj))

    def sum(self, total: str, group: Hashable) -> tuple[int, ...]:
        """The sums of a group; empty if it has no objects."""
        return self._totals[total].sums.get(group, ())

    def listen(self, notify: Callable[[K], None], keys: Callable[[objects.Object], Iterable[K]]) -> Callable[[], None]:
        """Call `notify` with the keys that `keys` gives for an object before and after each change.

        It is called at once for existing objects. The returned function removes it.
        """
        listener = (cast("Notify", notify), keys)  # `notify` accepts what `keys` gives
        for obj in list(self._objects.values()):
            self._notify(*listener, None, obj)
        return self._listeners.add(listener)

    def put(self, key: objects.NamespacedName, new: objects.Object | None) -> None:
        """Replace or remove an object, and notify the listeners."""
        old = self._objects.get(key)
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new
        for index in self._indexes.values():
            index.move(key, self._values(index.values_of, old), self._values(index.values_of, new))
        for total in self._totals.values():
            total.move(self._amounts(total, old), self._amounts(total, new))
        for notify, keys in self._listeners:
            self._notify(notify, keys, old, new)

    def _notify(self, notify: Notify, keys: ValuesOf, old: objects.Object | None, new: objects.Object | None) -> None:
        # A bug in one listener, or an unexpected object, must not end the watch of all others.
        for key in self._values(keys, old) | self._values(keys, new):
            try:
                notify(key)
            except Exception:
                self._count_failure()

    def _values(self, values_of: ValuesOf, obj: objects.Object | None) -> dict[Hashable, None]:
        try:
            return {} if obj is None else dict.fromkeys(values_of(obj))
        except Exception:
            self._count_failure()
            return {}

    def _amounts(self, total: Total, obj: objects.Object | None) -> GroupedAmounts:
        try:
            return () if obj is None else total.amounts_of(obj)
        except Exception:
            self._count_failure()
            return ()

    def _count_failure(self) -> None:
        self._failures.labels(self.cluster, self.resource).inc()
        log.exception("listener or index failed", extra={"cluster": self.cluster, "resource": self.resource})
