"""An HTTPS server of the kubelet API: bounded connections with one exchange each, and refusals.

What a request means is left to the handler: `node.Node` for a virtual node.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Protocol

from hansa.kubelet.exchange import Exchange
from hansa.kubelet.refusal import Refusal
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
MOST_CONNECTIONS = 1000  # of a server; further ones are closed
HANDSHAKE_SECONDS = 10.0
HEAD_SECONDS = 10.0  # from the handshake to the end of the request's head
ANSWER_SECONDS = 10.0  # to send a refusal
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}


Handle = Callable[[Exchange], Awaitable[None]]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]
Accept = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


class Tls(Protocol):
    """The TLS of a server."""

    def contexts(self) -> AsyncIterator[ssl.SSLContext]:
        """The present context, and each later one when it changes."""


@dataclass(frozen=True, slots=True)
class Server:
    """Serves a listening socket. The handler answers each request, or raises a Refusal."""

    name: str  # in log lines
    listening: socket.socket
    tls: Tls
    handle: Handle

    async def run(self) -> None:
        """Serve until cancelled; connections end with it. A new certificate is used by new connections."""
        async with asyncio.TaskGroup() as group:
            accept, server = _owned(group, self._serve), None
            try:
                async for context in self.tls.contexts():
                    former, server = server, await self._listen(accept, context)
                    if former is not None:
                        former.close()
            finally:
                if server is not None:
                    server.close()

    async def _listen(self, accept: Accept, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.start_server(
            accept, sock=self.listening.dup(), backlog=128, ssl=context, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection; nothing that its other side does raises."""
        exchange = Exchange(reader, writer)
        try:
            _keep_alive(writer)
            async with asyncio.timeout(HEAD_SECONDS):
                await exchange.receive()
            await self.handle(exchange)
        except Refusal as error:
            await self._refuse(exchange, error)
        except (OSError, EOFError, TimeoutError, HansaError) as error:
            log.debug("connection ended", extra={"server": self.name, "error": str(error) or type(error).__name__})
        except Exception:
            log.exception("connection failed unexpectedly", extra={"server": self.name})
        finally:
            writer.close()

    async def _refuse(self, exchange: Exchange, error: Refusal) -> None:
        """Answer with the refusal, unless an answer has begun."""
        log.info("call refused", extra={"server": self.name, "status": error.status, "error": str(error)})
        if not exchange.is_answered:
            with contextlib.suppress(OSError, TimeoutError):  # the caller has left
                async with asyncio.timeout(ANSWER_SECONDS):
                    await exchange.answer(error.status, str(error).encode())


def _owned(group: asyncio.TaskGroup, serve: Serve) -> Accept:
    """A callback that serves each connection in a task of the group, up to a limit."""
    running: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(running) >= MOST_CONNECTIONS:
            writer.close()
            return
        task = group.create_task(serve(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    return connected


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice a dead caller within a minute."""
    connected: socket.socket = writer.get_extra_info("socket")
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if option := getattr(socket, name, None):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
