"""Long iterations that let other tasks work in between: a node can have thousands of pods."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")
BATCH = 100  # items between two pauses, a few milliseconds


async def pausing(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, with a pause after each batch."""
    for number, item in enumerate(items, start=1):
        yield item
        if number % BATCH == 0:
            await asyncio.sleep(0)
