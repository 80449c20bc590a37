"""Whether this process may write along a link: of several processes only one serves an upper cluster.

The applier asks before each write. How processes agree is left to leader election and sharding.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol


class WriteGate(Protocol):
    """Asked with the upper cluster of an object, and the cluster that is written to."""

    def may_write(self, upper: str, cluster: str) -> bool:
        """Whether this process may write now."""

    def write(self, upper: str, cluster: str) -> AbstractAsyncContextManager[None]:
        """Write inside. Raises `Unreachable` if this process may not write any more."""


@dataclass(frozen=True, slots=True)
class Leading:
    """The gate of leader election: all links, or none."""

    is_leading: Callable[[], bool]

    def may_write(self, upper: str, cluster: str) -> bool:
        return self.is_leading()

    def write(self, upper: str, cluster: str) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()


OPEN: Final = Leading(lambda: True)
