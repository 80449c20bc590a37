"""Runs jobs side by side to their end: what one of them fails at does not stop the others."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from hansa.runtime.errors import HansaError

T = TypeVar("T")


async def run(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all; if some fail, one error with every reason, of the first one's class."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures:
        if not isinstance(failure, HansaError):
            raise failure
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise HansaError("; ".join(dict.fromkeys(str(failure) for failure in failures)))
    return [result for result in results if not isinstance(result, BaseException)]
