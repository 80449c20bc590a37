"""The open connections to one API server: which one serves a request, and when one more is worth its price.

A TLS handshake costs both sides as much as some requests, and a server that is busy is no faster for more of them; one
that is far away is, or one that waits for others itself. What is sent on a connection is the transport's matter.
"""

import asyncio
import collections

from hansa.kube.credentials import Access
from hansa.kube.http.connection import Connection, connect

FREELY = 2  # connections for which no request waits
NEAR = 0.005  # seconds: a server no farther than that which lets us wait is probably busy
# Seconds, times the connections there are: how long a request waits for one before one more is opened.
PATIENCE, PATIENCE_NEAR = 0.05, 0.2


class Connections:
    """Connections that are kept open for the access that was used last."""

    def __init__(self) -> None:
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._access: Access | None = None  # for which the idle connections are
        self._taken = 0  # of those that will be given back
        self._patience = PATIENCE
        self._one_more = 0.0  # when patience was lost
        self._waiting: collections.deque[asyncio.Future[Connection | None]] = collections.deque()

    async def take(self, access: Access, *, is_new: bool = False) -> Connection:
        """A connection for one exchange, which the caller gives back or drops."""
        if not is_new and (kept := self._reusable(access)) is not None:
            self._taken += 1
            return kept
        if not is_new and self._taken >= FREELY and (freed := await self._freed(access)) is not None:
            return freed
        self._taken += 1
        try:
            return await self.dial(access)
        except BaseException:
            self._taken -= 1
            raise

    def give_back(self, connection: Connection, access: Access) -> None:
        """The exchange is over; another may follow on this connection."""
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
        """The exchange failed: nothing more can follow."""
        self._taken -= 1
        connection.close()

    async def dial(self, access: Access) -> Connection:
        """A new connection, for what goes on until somebody ends it."""
        connection = await connect(access)
        self._patience = PATIENCE_NEAR if connection.distance < NEAR else PATIENCE
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
        """The idle connection that was used last; the others grow cold and are closed by the server."""
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
        """A connection that is given back in a moment; None when one more should be opened."""
        freed: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(freed)
        self._lose_patience_later(freed)
        try:
            return await freed
        except asyncio.CancelledError:
            if not freed.cancelled() and (connection := freed.result()) is not None:
                self.give_back(connection, access)
            raise

    def _lose_patience_later(self, freed: asyncio.Future[Connection | None]) -> None:
        asyncio.get_running_loop().call_later(self._patience * self._taken, self._lose_patience, freed)

    def _lose_patience(self, freed: asyncio.Future[Connection | None]) -> None:
        now = asyncio.get_running_loop().time()
        if freed.done():
            return
        if now - self._one_more < self._patience * self._taken:
            self._lose_patience_later(freed)
        else:
            self._one_more = now
            freed.set_result(None)
