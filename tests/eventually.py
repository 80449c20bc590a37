"""Waiting in tests: for a condition, with a deadline, never for a time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], *, within: float = 30.0, every: float = 0.05) -> T:
    """The first truthy answer. An assertion that fails in `look` counts as "not yet" and is shown in the end."""
    last: object = None
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while loop.time() < deadline:
        try:
            if last := await look():
                return last
        except AssertionError as error:
            last = error
        await asyncio.sleep(every)
    raise AssertionError(f"not within {within:g} s; the last answer was: {last}")
