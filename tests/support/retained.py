"""Counts what a component keeps in memory: the entries of all containers that its objects reach."""

import collections
from collections.abc import Iterator, Mapping
from typing import Any

BOUNDED = ("metrics", "event_correlation")  # modules whose objects have a limit of their own


def entries(root: object) -> dict[str, int]:
    """The number of entries of every container below an object, by the path of attributes that leads to it."""
    found: collections.Counter[str] = collections.Counter()
    seen: set[int] = set()
    stack: list[tuple[str, object]] = [(type(root).__name__, root)]
    while stack:
        path, one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Mapping | set | frozenset | list | tuple | collections.deque):
            found[path] += len(one)
            members: Any = (*one.keys(), *one.values()) if isinstance(one, Mapping) else one
            stack.extend((f"{path}[]", member) for member in members if not isinstance(member, str | bytes | int))
        elif one is root or _is_counted(one):
            stack.extend((f"{path}.{name}", value) for name, value in _attributes(one))
    return {path: count for path, count in found.items() if count}


def growth(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """What has more entries than before, and how many."""
    return {path: count - before.get(path, 0) for path, count in after.items() if count > before.get(path, 0)}


def _is_counted(one: object) -> bool:
    module = type(one).__module__
    return module.startswith("hansa.") and module.rpartition(".")[2] not in BOUNDED


def _attributes(one: object) -> Iterator[tuple[str, object]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(one, name):
                yield name, getattr(one, name)
