"""An immutable map: a change returns a new map that shares most of its nodes with the old one. Used by views.

A hash trie with small dicts as leaves: a change copies one leaf and its path.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_BITS: Final = 5  # of the hash, per level
_BRANCHES: Final = 1 << _BITS
_LEAF: Final = 64  # entries; copying them costs less than another level
_DEEPEST: Final = 12  # levels; 60 bits of the hash


class PersistentMap(Generic[K, V]):
    """An immutable map. Items are in no particular order."""

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: Any = {}  # a leaf is a dict, a branch a tuple
        self._size = 0

    @classmethod
    def of(cls, entries: Mapping[K, V]) -> "PersistentMap[K, V]":
        """A map with these entries, built at once."""
        made: PersistentMap[K, V] = cls()
        made._root, made._size = _built(dict(entries), 0), len(entries)
        return made

    def get(self, key: K) -> V | None:
        """The value of a key, or None."""
        node, rest = self._root, hash(key)
        while type(node) is tuple:
            node = node[rest & (_BRANCHES - 1)]
            rest >>= _BITS
        found: V | None = node.get(key)
        return found

    def having(self, key: K, value: V) -> "PersistentMap[K, V]":
        """A map with this entry added or replaced."""
        made: PersistentMap[K, V] = PersistentMap()
        made._root = _having(self._root, hash(key), 0, key, value)
        made._size = self._size + (self.get(key) is None)
        return made

    def without(self, key: K) -> "PersistentMap[K, V]":
        """A map without this entry."""
        if self.get(key) is None:
            return self
        made: PersistentMap[K, V] = PersistentMap()
        if self._size > 1:
            made._root = _without(self._root, hash(key), key)
            made._size = self._size - 1
        return made

    def items(self) -> Iterator[tuple[K, V]]:
        return _items(self._root)

    def values(self) -> Iterator[V]:
        return (value for _, value in self.items())

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.items())

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return self._size


def _built(entries: dict[Any, Any], depth: int) -> Any:
    if len(entries) <= _LEAF or depth >= _DEEPEST:
        return entries
    return tuple(_built(leaf, depth + 1) for leaf in _split(entries, depth))


def _having(node: Any, rest: int, depth: int, key: Any, value: Any) -> Any:
    if type(node) is tuple:
        at = rest & (_BRANCHES - 1)
        return (*node[:at], _having(node[at], rest >> _BITS, depth + 1, key, value), *node[at + 1 :])
    leaf = node.copy()
    leaf[key] = value
    return leaf if len(leaf) <= _LEAF or depth >= _DEEPEST else _split(leaf, depth)


def _split(leaf: dict[Any, Any], depth: int) -> tuple[dict[Any, Any], ...]:
    leaves: tuple[dict[Any, Any], ...] = tuple({} for _ in range(_BRANCHES))
    for key, value in leaf.items():
        leaves[hash(key) >> depth * _BITS & (_BRANCHES - 1)][key] = value
    return leaves


def _without(node: Any, rest: int, key: Any) -> Any:
    if type(node) is tuple:
        at = rest & (_BRANCHES - 1)
        return (*node[:at], _without(node[at], rest >> _BITS, key), *node[at + 1 :])
    leaf = node.copy()
    del leaf[key]
    return leaf


def _items(node: Any) -> Iterator[Any]:
    if type(node) is tuple:
        for child in node:
            yield from _items(child)
    else:
        yield from node.items()
