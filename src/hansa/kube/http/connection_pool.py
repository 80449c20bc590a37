"""The open connections to one API server: two, and one more when a request has waited 50 ms for each that there is.

Used by the transport. A TLS handshake costs both sides as much as several requests, and a busy server is no faster with
more connections; a distant server is. What is sent on a connection is left to the transport.
"""

import asyncio
import collections

from hansa.kube.credentials import Access
from hansa.kube.http.connection import Connection, connect

AT_ONCE = 2  # connections that are opened without a wait
WAIT = 0.05  # seconds for each open connection, for which a request waits before one more is opened


class Connections:
    """Connections that are kept open, all with the latest access."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._access: Access | None = None  # of the idle connections
        self._taken = 0  # connections in use for an exchange
        self._last_added = 0.0  # when a request last stopped waiting and opened one more
        self._waiting: collections.deque[asyncio.Future[Connection | None]] = collections.deque()

    async def take(self, access: Access, *, is_new: bool = False) -> Connection:
        """A connection for one exchange; the caller gives it back or drops it."""
        if not is_new and (kept := self._reusable(access)) is not None:
            self._taken += 1
            return kept
        if not is_new and self._taken >= AT_ONCE and (freed := await self._freed(access)) is not None:
            return freed
        self._taken += 1
        try:
            return await self.dial(access)
        except BaseException:
            self._taken -= 1
            raise

    def give_back(self, connection: Connection, access: Access) -> None:
        """Return a connection after its exchange; another may follow."""
        if not connection.is_reusable or access is not self._access:
            self.drop(connection)
            return
        while self._waiting:
            freed = self._waiting.popleft()
            if not freed.done():
                freed.set_result(connection)
                return
        self._taken -= 1
        self._idle.append(connection)

    def drop(self, connection: Connection) -> None:
        """Close a connection whose exchange failed."""
        self._taken -= 1
        connection.close()

    async def dial(self, access: Access) -> Connection:
        """A new connection, for a stream or a tunnel; the caller closes it."""
        connection = await connect(access)
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    async def close(self) -> None:
        """Close all of them, also those that are in use."""
        self._idle.clear()
        closing = [connection.closed for connection in self._open]
        for connection in list(self._open):
            connection.close()
        await asyncio.gather(*closing)

    def _reusable(self, access: Access) -> Connection | None:
        """The idle connection that was used last; the server closes those that stay idle."""
        if access is not self._access:
            for connection in self._idle:
                connection.close()
            self._idle, self._access = [], access
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable:
                return connection
            connection.close()
        return None

    async def _freed(self, access: Access) -> Connection | None:
        """A connection that is given back in time; None if one more is to be opened."""
        freed: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(freed)
        self._stop_waiting_later(freed)
        try:
            return await freed
        except asyncio.CancelledError:
            if not freed.cancelled() and (connection := freed.result()) is not None:
                self.give_back(connection, access)
            raise

    def _stop_waiting_later(self, freed: asyncio.Future[Connection | None]) -> None:
        asyncio.get_running_loop().call_later(WAIT * self._taken, self._stop_waiting, freed)

    def _stop_waiting(self, freed: asyncio.Future[Connection | None]) -> None:
        now = asyncio.get_running_loop().time()
        if freed.done():
            return
        if now - self._last_added < WAIT * self._taken:  # one at a time, since one more serves many that wait
            self._stop_waiting_later(freed)
        else:
            self._last_added = now
            freed.set_result(None)
