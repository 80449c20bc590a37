"""One cache of a resource in several namespaces, for credentials that may not read the whole cluster.

Each namespace is watched by itself; reads, indexes, listeners and our own writes go to the namespace concerned.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Protocol, TypeVar

from hansa.control import freshness, store, table
from hansa.kube import objects

K = TypeVar("K", bound=Hashable)


class Freshness(Protocol):
    """Whether a cache is current; `freshness.Freshness` for one store, merged for several."""

    @property
    def has_synced(self) -> bool: ...
    @property
    def is_known(self) -> bool: ...
    @property
    def is_forbidden(self) -> bool: ...
    @property
    def error(self) -> str: ...
    async def wait_synced(self, deadline: float) -> None: ...
    def listen(self, notify: Callable[[bool], None]) -> Callable[[], None]: ...


class Cache(Protocol):
    """The interface that readers use, of one store or of a merged one."""

    @property
    def freshness(self) -> Freshness: ...
    def __iter__(self) -> Iterator[objects.NamespacedName]: ...
    def __len__(self) -> int: ...
    def get(self, key: objects.NamespacedName) -> objects.Object | None: ...
    def index(self, name: str, values_of: table.ValuesOf) -> None: ...
    def find(self, index: str, value: Hashable) -> list[objects.Object]: ...
    def spread(self, index: str) -> int: ...
    def total(self, name: str, amounts_of: table.AmountsOf) -> None: ...
    def sum(self, total: str, group: Hashable) -> tuple[int, ...]: ...
    def listen(
        self, notify: Callable[[K], None], keys: Callable[[objects.Object], Iterable[K]]
    ) -> Callable[[], None]: ...
    def observe(self, obj: objects.Object) -> None: ...
    def observe_gone(self, key: objects.NamespacedName, uid: str) -> None: ...


class MergedStore:
    """The stores of some namespaces as one. Objects in other namespaces count as absent."""

    def __init__(self, stores: Mapping[str, store.Store]) -> None:
        self._stores = stores
        self.freshness = _MergedFreshness(tuple(one.freshness for one in stores.values()))

    def __iter__(self) -> Iterator[objects.NamespacedName]:
        return (key for one in self._stores.values() for key in one)

    def __len__(self) -> int:
        return sum(len(one) for one in self._stores.values())

    def get(self, key: objects.NamespacedName) -> objects.Object | None:
        """The object, if there is one."""
        one = self._stores.get(key.namespace)
        return None if one is None else one.get(key)

    def index(self, name: str, values_of: table.ValuesOf) -> None:
        """Add an index over all namespaces."""
        for one in self._stores.values():
            one.index(name, values_of)

    def find(self, index: str, value: Hashable) -> list[objects.Object]:
        """The objects under a value of an index."""
        return [obj for one in self._stores.values() for obj in one.find(index, value)]

    def spread(self, index: str) -> int:
        """How many values of an index have objects; a value in several namespaces counts once in each."""
        return sum(one.spread(index) for one in self._stores.values())

    def total(self, name: str, amounts_of: table.AmountsOf) -> None:
        """Keep sums over all namespaces."""
        for one in self._stores.values():
            one.total(name, amounts_of)

    def sum(self, total: str, group: Hashable) -> tuple[int, ...]:
        """The sums of a group over all namespaces."""
        parts = [found for one in self._stores.values() if (found := one.sum(total, group))]
        return tuple(map(sum, zip(*parts, strict=True)))

    def listen(self, notify: Callable[[K], None], keys: Callable[[objects.Object], Iterable[K]]) -> Callable[[], None]:
        """Call `notify` for changes in all namespaces. The returned function removes it."""
        ends = [one.listen(notify, keys) for one in self._stores.values()]
        return lambda: _call_all(ends)

    def observe(self, obj: objects.Object) -> None:
        """Apply the server's answer to a write of ours."""
        if (one := self._stores.get(obj.namespace)) is not None:
            one.observe(obj)

    def observe_gone(self, key: objects.NamespacedName, uid: str) -> None:
        """Apply the server's answer that an object is gone."""
        if (one := self._stores.get(key.namespace)) is not None:
            one.observe_gone(key, uid)


class _MergedFreshness:
    """Known when all namespaces are known."""

    def __init__(self, parts: tuple[freshness.Freshness, ...]) -> None:
        self._parts = parts

    @property
    def has_synced(self) -> bool:
        return all(part.has_synced for part in self._parts)

    @property
    def is_known(self) -> bool:
        return all(part.is_known for part in self._parts)

    @property
    def is_forbidden(self) -> bool:
        return any(part.is_forbidden for part in self._parts)

    @property
    def error(self) -> str:
        return next((part.error for part in self._parts if part.error), "")

    async def wait_synced(self, deadline: float) -> None:
        for part in self._parts:
            await part.wait_synced(deadline)

    def listen(self, notify: Callable[[bool], None]) -> Callable[[], None]:
        ends = [part.listen(lambda _: notify(self.is_known)) for part in self._parts]
        return lambda: _call_all(ends)


def _call_all(ends: Iterable[Callable[[], None]]) -> None:
    for end in ends:
        end()
