"""Who wants to hear of something. Each is told in the order of coming, and can leave at any time."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Listeners(Generic[T]):
    """Any number of listeners of one kind; iterating takes those that are there now."""

    def __init__(self) -> None:
        self._listeners: dict[object, T] = {}

    def __iter__(self) -> Iterator[T]:
        return iter(tuple(self._listeners.values()))

    def add(self, listener: T) -> Callable[[], None]:
        """One more. The answer takes it away again; doing so twice is fine."""
        token = object()
        self._listeners[token] = listener

        def end() -> None:
            self._listeners.pop(token, None)

        return end
