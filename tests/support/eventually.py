"""Waits for a condition, with a deadline; tests never sleep for a fixed time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hansa.kube import errors

T = TypeVar("T")
WITHIN = 60.0  # seconds; a machine that runs many clusters at once is slow


async def eventually(look: Callable[[], Awaitable[T]], *, within: float = WITHIN, every: float = 0.05) -> T:
    """The first truthy result of `look`, which is called every `every` seconds.

    A failed assertion counts as "not yet", and so does what is missing: an object that is being replaced, a status
    without a phase, a list without the one object that is expected, a server that does not listen yet. The last result
    is part of the error.
    """
    last: object = None
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while loop.time() < deadline:
        try:
            if last := await look():
                return last
        except (AssertionError, LookupError, ValueError, ConnectionError, errors.NotFound) as error:
            last = f"{type(error).__name__}: {error}"
        await asyncio.sleep(every)
    raise AssertionError(f"not within {within:g} s; the last answer was: {last}")
