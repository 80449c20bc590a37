"""What runs for shards: work that holds a shard until it has ended, and writes that end when the member has to stop.

A member withdraws its claim on a shard only when nothing holds it any more.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator

from hansa.kube import errors, sending


class Guard:
    """Holds of shards, and writes in flight. Calls `freed` when the last hold of a shard ends."""

    def __init__(self, freed: Callable[[], None]) -> None:
        self._freed = freed
        self._holds: collections.Counter[int] = collections.Counter()
        self._writes: set[asyncio.Timeout] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """The shards that are held."""
        found = 0
        for shard in self._holds:
            found |= 1 << shard
        return found

    @contextlib.contextmanager
    def hold(self, shard: int) -> Iterator[None]:
        """Hold a shard."""
        self._holds[shard] += 1
        try:
            yield
        finally:
            self._holds[shard] -= 1
            if not self._holds[shard]:
                del self._holds[shard]
                self._freed()

    @contextlib.asynccontextmanager
    async def write(self, shard: int, may_write: Callable[[], bool]) -> AsyncIterator[None]:
        """Write for a shard, which is held meanwhile. Raises `Unreachable` when the member has to stop.

        Requests that are not sent yet are sent only while `may_write`.
        """
        scope = asyncio.timeout(None)
        with self.hold(shard), sending.only_while(may_write):
            try:
                async with scope:
                    self._writes.add(scope)
                    try:
                        yield
                    finally:
                        self._writes.discard(scope)
            except TimeoutError:
                if not scope.expired():
                    raise
                raise errors.Unreachable("cancelled, because this replica could not renew its Lease") from None

    def stop_after(self, seconds: float) -> None:
        """Cancel all writes in flight after so many seconds, unless this is called again before."""
        self.close()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), self._stop)

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop(self) -> None:
        for scope in self._writes:
            scope.reschedule(0)
