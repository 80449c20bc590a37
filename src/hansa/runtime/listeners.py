"""Listeners of changes, called in the order in which they were added. Each can be removed at any time."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Any number of listeners of one type; iterating is over a copy, so listeners may be removed meanwhile."""

    def __init__(self) -> None:
        self._listeners: dict[object, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._listeners.values()))

    def add(self, listener: T) -> Callable[[], None]:
        """Add a listener. The returned function removes it; calling that twice is allowed."""
        token = object()
        self._listeners[token] = listener

        def end() -> None:
            self._listeners.pop(token, None)

        return end
