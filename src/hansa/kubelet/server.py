"""An HTTPS server of the kubelet API: bounded connections with one exchange each, and refusals.

What a request means is left to the handler: `node.Node` for a virtual node.
"""

import asyncio
import collections
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from hansa.kubelet import connecting
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.refusal import Refusal
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
MOST_CONNECTIONS = 1000  # of a server, after the handshake; further ones are closed
# At a time; for a further one, the oldest of the address with most of them is dropped: neither idle connections nor a
# burst from one address exclude callers at others.
MOST_HANDSHAKES = 100
HEAD_SECONDS = 10.0  # from the handshake to the end of the request's head
ACCEPT_RETRY = 0.1  # seconds until the next attempt to accept, when there are too many open files

Handle = Callable[[Exchange], Awaitable[None]]
Admit = Callable[[Exchange], contextlib.AbstractContextManager[None]]


class Tls(Protocol):
    """The TLS of a server."""

    def contexts(self) -> AsyncIterator[ssl.SSLContext]:
        """The present context, and each later one when it changes."""


class Server:
    """Serves a listening socket. The handler answers each request, or raises a Refusal.

    `name` is in log lines; `distrusted` is called for each connection whose TLS handshake fails, `admit` for each other
    one, before a byte of its request is read. An OSError of `admit` closes the connection. `most` is the number of
    connections that there may be now.
    """

    def __init__(
        self,
        name: str,
        listening: socket.socket,
        tls: Tls,
        handle: Handle,
        *,
        distrusted: Callable[[], None] = lambda: None,
        admit: Admit = lambda _: contextlib.nullcontext(),
        most: Callable[[], int] = lambda: MOST_CONNECTIONS,
    ) -> None:
        self.name, self._admit, self._most = name, admit, most
        self._listening, self._tls, self._handle, self._distrusted = listening, tls, handle, distrusted
        self._context: ssl.SSLContext
        self._connections: set[asyncio.Task[None]] = set()
        self._handshakes: dict[asyncio.Task[None], str] = {}  # of these: their addresses, oldest first

    async def run(self) -> None:
        """Serve until cancelled; connections end with it. A new certificate is used by new connections."""
        contexts = self._tls.contexts()
        self._context = await anext(contexts)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(contexts))
                group.create_task(self._accept())
        finally:
            await tasks.cancel(*self._connections)

    async def _follow(self, contexts: AsyncIterator[ssl.SSLContext]) -> None:
        async for context in contexts:
            self._context = context

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening.setblocking(False)
        while True:
            try:
                accepted, (address, *_) = await loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("connection not accepted", extra={"server": self.name, "error": str(error)})
                await asyncio.sleep(ACCEPT_RETRY)
                continue
            if len(self._connections) - len(self._handshakes) >= self._most():
                accepted.close()
                continue
            if len(self._handshakes) >= MOST_HANDSHAKES:
                self._give_up()
            task = asyncio.create_task(self._serve(accepted))
            self._connections.add(task)
            self._handshakes[task] = address
            task.add_done_callback(self._ended)
            await asyncio.sleep(0)  # it begins before it can be given up, so that it closes its socket

    def _give_up(self) -> None:
        [(busiest, _)] = collections.Counter(self._handshakes.values()).most_common(1)
        oldest = next(task for task, address in self._handshakes.items() if address == busiest)
        del self._handshakes[oldest]
        oldest.cancel()
        self._distrusted()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._handshakes.pop(task, None)

    async def _serve(self, accepted: socket.socket) -> None:
        """One connection; nothing that its other side does raises."""
        try:
            reader, writer = await connecting.secured(accepted, self._context)
        except OSError as error:
            self._distrusted()
            log.info("TLS handshake failed", extra={"server": self.name, "error": str(error) or type(error).__name__})
            return
        with contextlib.closing(writer):
            if (task := asyncio.current_task()) is not None:
                self._handshakes.pop(task, None)
            await self._exchange(Exchange(reader, writer))

    async def _exchange(self, exchange: Exchange) -> None:
        """A connection is counted until it is closed; one that broke, or is too many, is cut."""
        try:
            with self._admit(exchange):
                await self._answer(exchange)
                await connecting.closed(exchange.writer)
        except (OSError, EOFError, TimeoutError, HansaError) as error:
            log.debug("connection ended", extra={"server": self.name, "error": str(error) or type(error).__name__})
        except Exception:
            log.exception("connection failed unexpectedly", extra={"server": self.name})
        else:
            return
        exchange.writer.transport.abort()

    async def _answer(self, exchange: Exchange) -> None:
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                await exchange.receive()
            await self._handle(exchange)
        except Refusal as error:
            await self._refuse(exchange, error)

    async def _refuse(self, exchange: Exchange, error: Refusal) -> None:
        """Answer with the refusal, unless an answer has begun."""
        log.info("call refused", extra={"server": self.name, "status": error.status, "error": str(error)})
        if not exchange.is_answered:
            with contextlib.suppress(OSError, TimeoutError):  # the caller has left
                await exchange.answer(error.status, str(error).encode())
