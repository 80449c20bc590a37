"""Requests and answers on the wire: `async (Request) -> Response`, and wrappers of that shape that compose.

One wrapper per concern: credentials, requests in flight, the server's "come back later". What a request means, and
which answers are errors, is the client's.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urlsplit

from hansa.kube.credentials import Access, Credentials
from hansa.kube.errors import Unreachable
from hansa.kube.http.connection import Connection, ProxyRefused, Stale
from hansa.kube.http.connection_pool import Connections
from hansa.kube.http.tunnel import Tunnel
from hansa.runtime.clock import Clock

IDEMPOTENT = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `target` is path and query, already encoded."""

    method: str
    target: str
    doing: str  # completes "cannot …"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    is_stream: bool = False  # the answer goes on until somebody ends it
    access: Access | None = None


class Stream(Protocol):
    """The open body of an answer."""

    async def pieces(self) -> list[bytes]:
        """What has come, in the pieces in which it was sent; empty at the end."""

    async def read(self) -> bytes:
        """What has come, at least one byte; empty at the end."""

    def close(self) -> None:
        """Let go of the connection."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. The body is read, unless it was to be streamed or the connection upgraded."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    stream: Stream | None = None
    tunnel: Tunnel | None = None


Transport = Callable[[Request], Awaitable[Response]]


class Http:
    """The innermost transport: HTTP/1.1 on connections that are kept open, for one API server."""

    def __init__(self) -> None:
        self._connections = Connections()

    async def __call__(self, request: Request) -> Response:
        access = request.access
        if access is None:
            raise ValueError("a request needs an access: wrap the transport with `authorized`")
        data = _written(request, access)
        try:
            if request.is_stream:
                return await _streamed(await self._connections.dial(access), data, request, access)
            try:
                return await self._exchange(data, access)
            except Stale:
                # An idle connection may be closed just when it is used; what is not idempotent is not sent twice.
                if request.method not in IDEMPOTENT:
                    raise
                return await self._exchange(data, access, is_new=True)
        except NETWORK_ERRORS as error:
            raise unreachable(error, access, request.doing) from None

    async def close(self) -> None:
        """Close all connections, also those of streams."""
        await self._connections.close()

    async def _exchange(self, data: bytes, access: Access, *, is_new: bool = False) -> Response:
        connection = await self._connections.take(access, is_new=is_new)
        try:
            status, headers = await connection.exchange(data)
            body = await connection.body()
        except BaseException:
            self._connections.drop(connection)
            raise
        self._connections.give_back(connection, access)
        return Response(status, headers, body)


async def _streamed(connection: Connection, data: bytes, request: Request, access: Access) -> Response:
    """An answer that goes on; a refusal is read to its end."""
    try:
        status, headers = await connection.exchange(data)
        if status == 101:
            return Response(status, headers, tunnel=Tunnel(connection, headers))
        if status < 300:
            return Response(status, headers, stream=_Body(connection, access, request.doing))
        body = await connection.body()
    except BaseException:
        connection.close()
        raise
    connection.close()
    return Response(status, headers, body)


class _Body:
    def __init__(self, connection: Connection, access: Access, doing: str) -> None:
        self._connection = connection
        self._access = access
        self._doing = doing

    async def pieces(self) -> list[bytes]:
        try:
            return await self._connection.pieces()
        except NETWORK_ERRORS as error:
            raise unreachable(error, self._access, self._doing) from None

    async def read(self) -> bytes:
        return b"".join(await self.pieces())

    def close(self) -> None:
        self._connection.close()


def _written(request: Request, access: Access) -> bytes:
    server = urlsplit(access.server)
    headers = [("Host", server.netloc), *request.headers, *access.headers]
    if request.body or request.method not in ("GET", "DELETE"):
        headers.append(("Content-Length", str(len(request.body))))
    lines = [
        f"{request.method} {server.path}{request.target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers),
    ]
    text = "\r\n".join(lines)
    if text.count("\r") != len(headers) or text.count("\n") != len(headers):
        raise ValueError(f"cannot {request.doing}: a header or path has a line break")
    return text.encode("latin-1") + b"\r\n\r\n" + request.body


def authorized(inner: Transport, credentials: Credentials) -> Transport:
    """Present the current credentials; when they are refused, ask once for newer ones and try again with them."""

    async def send(request: Request) -> Response:
        access = await credentials.access()
        response = await inner(replace(request, access=access))
        if response.status == 401:
            renewed = await credentials.renew(access)
            if renewed is not access:
                return await inner(replace(request, access=renewed))
        return response

    return send


def bounded(inner: Transport, limit: int) -> Transport:
    """At most so many requests in flight."""
    slots = asyncio.Semaphore(limit)

    async def send(request: Request) -> Response:
        async with slots:
            return await inner(request)

    return send


def patient(inner: Transport, clock: Clock, *, within: float) -> Transport:
    """Come back when the server says so (429 or 5xx with Retry-After), for so many seconds; then give its answer."""

    async def send(request: Request) -> Response:
        end = clock.now() + within
        while True:
            response = await inner(request)
            wait = retry_after(response)
            if wait is None or clock.now() + wait > end:
                return response
            await clock.sleep(wait)

    return send


def retry_after(response: Response) -> float | None:
    """Seconds after which the server wants to be asked again; None if it does not say so."""
    if response.status != 429 and response.status < 500:
        return None
    text = response.headers.get("Retry-After", "")
    return max(float(text), 1.0) if text.isdigit() else None  # "0" would be a busy loop


NETWORK_ERRORS = (OSError, EOFError)  # TimeoutError and ssl.SSLError are OSErrors


def unreachable(error: Exception, access: Access, doing: str) -> Unreachable:
    """One sentence for what the network raised. Raise it `from None`: causes can hold headers and proxy passwords."""
    return Unreachable(f"cannot {doing}: {_why(error, access)}")


def _why(error: Exception, access: Access) -> str:
    origin = access.login.server_origin
    match error:
        case ssl.SSLCertVerificationError(verify_message=reason):
            return access.distrust(reason)
        case ProxyRefused():
            return f"the proxy in {access.login.proxy_origin} does not let us through to {access.server}"
        case TimeoutError():
            return f"{access.server}, from {origin}, does not answer"
        case ConnectionRefusedError() | socket.gaierror() | OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH):
            return f"{access.server}, from {origin}, cannot be reached ({_reason(error)})"
    return f"the connection to {access.server} broke ({_reason(error)})"


def _reason(error: Exception) -> str:
    # Only the system's own words: other texts can hold anything. asyncio puts addresses where they should be.
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower() if error.errno > 0 else str(error.strerror).lower()
    return type(error).__name__
