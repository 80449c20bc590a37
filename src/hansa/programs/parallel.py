"""Runs coroutines concurrently to their end; a failure of one does not cancel the others.

Used where clusters and nodes are independent of each other and one error message names all failures.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from hansa.runtime.errors import HansaError

T = TypeVar("T")


async def run(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all jobs. One failure is raised as it is; several become one error with every message."""
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
