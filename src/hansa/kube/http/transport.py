"""Sends requests to one API server: `async (Request) -> Response`, and wrappers of that shape that compose.

One wrapper per concern: credentials, requests in flight, Retry-After. What a request means, and which answers are
errors, is left to the client.
"""

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urlsplit

from hansa.kube.credentials import Access, Credentials
from hansa.kube.errors import Unreachable
from hansa.kube.http.connection import Connection, ProxyRefused, Stale, TooLong
from hansa.kube.http.connection_pool import Connections
from hansa.kube.http.framing import Head, Malformed
from hansa.kube.http.limits import LONGEST_RETRY_AFTER, MIB, Limits, TooLarge
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
    is_stream: bool = False  # the body is read by the caller, as it is received
    access: Access | None = None
    may_send: Callable[[], bool] | None = field(default=None, repr=False)  # asked when a connection is ready


class Stream(Protocol):
    """The open body of an answer."""

    async def pieces(self) -> list[bytes]:
        """The received bytes, in the chunks in which they were sent; empty at the end."""

    async def read(self) -> bytes:
        """The received bytes, at least one; empty at the end."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, with its body; with a stream or a tunnel instead if the request is one for it."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    stream: Stream | None = None
    tunnel: Tunnel | None = None


Transport = Callable[[Request], Awaitable[Response]]


class Http:
    """The innermost transport: HTTP/1.1 on connections that are kept open, for one API server."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._connections = Connections()

    async def __call__(self, request: Request) -> Response:
        access = request.access
        if access is None:
            raise ValueError("a request needs an access: wrap the transport with `authorized`")
        data = _written(request, access)
        try:
            if request.is_stream:
                return await self._streamed(data, request, access)
            try:
                return await self._exchange(data, request, access)
            except Stale:
                # The server may close an idle connection just when it is used. Only idempotent requests are sent twice.
                if request.method not in IDEMPOTENT:
                    raise
                return await self._exchange(data, request, access, is_new=True)
        except TooLong:
            limit = f"{self._limits.answer / MIB:g} MiB, of an error {self._limits.refusal / MIB:g} MiB"
            raise TooLarge(f"cannot {request.doing}: the answer is larger than its limit ({limit})") from None
        except NETWORK_ERRORS as error:
            raise unreachable(error, access, request.doing) from None

    async def close(self) -> None:
        """Close all connections, also those of streams."""
        await self._connections.close()

    async def _exchange(self, data: bytes, request: Request, access: Access, *, is_new: bool = False) -> Response:
        connection = await self._connections.take(access, is_new=is_new)
        if request.may_send is not None and not request.may_send():
            self._connections.give_back(connection, access)
            raise Unreachable(f"cannot {request.doing}: not sent, because this replica may not write any more")
        try:
            head = await connection.exchange(data)
            body = await connection.body(self._limit(head))
        except BaseException:
            self._connections.drop(connection)
            raise
        self._connections.give_back(connection, access)
        return Response(head.status, head.headers, body)

    async def _streamed(self, data: bytes, request: Request, access: Access) -> Response:
        """An answer whose body is left to the caller, except that of an error."""
        connection = await self._connections.dial(access)
        try:
            head = await connection.exchange(data, may_upgrade=_is_upgrade(request))
            if head.status == 101:
                return Response(head.status, head.headers, tunnel=Tunnel(connection, head.headers))
            if head.status < 300:
                return Response(head.status, head.headers, stream=_Body(connection, access, request.doing))
            body = await connection.body(self._limit(head))
        except BaseException:
            connection.close()
            raise
        connection.close()
        return Response(head.status, head.headers, body)

    def _limit(self, head: Head) -> int:
        return self._limits.answer if head.status < 300 else self._limits.refusal


def _is_upgrade(request: Request) -> bool:
    return any(name.lower() == "upgrade" for name, _ in request.headers)


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
    """Send the current credentials; if they are refused, renew them and retry, once."""

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
    """Send at most `limit` requests at a time."""
    slots = asyncio.Semaphore(limit)

    async def send(request: Request) -> Response:
        async with slots:
            return await inner(request)

    return send


def patient(inner: Transport, clock: Clock, *, within: float) -> Transport:
    """Retry after a 429 or 5xx with Retry-After, for at most `within` seconds; then return the answer."""

    async def send(request: Request) -> Response:
        end = clock.now() + within
        while True:
            response = await inner(request)
            wait = retry_after(response)
            if wait is None or clock.now() + wait > end:
                return response
            await clock.sleep(wait)

    return send


_SECONDS = re.compile(r"[0-9]{1,9}")  # str.isdigit() accepts digits that float() refuses


def retry_after(response: Response) -> float | None:
    """The seconds of Retry-After, from 1 to LONGEST_RETRY_AFTER; None if the server has no valid one."""
    if response.status != 429 and response.status < 500:
        return None
    text = response.headers.get("Retry-After", "")
    if _SECONDS.fullmatch(text) is None:
        return None
    return min(max(float(text), 1.0), LONGEST_RETRY_AFTER)  # 0 would be a busy loop


NETWORK_ERRORS = (OSError, EOFError)  # TimeoutError and ssl.SSLError are OSErrors


def unreachable(error: Exception, access: Access, doing: str) -> Unreachable:
    """The error for what the network raised. Raise it `from None`: causes can have headers and proxy passwords."""
    return Unreachable(f"cannot {doing}: {_why(error, access)}")


def _why(error: Exception, access: Access) -> str:
    origin = access.login.server_origin
    match error:
        case ssl.SSLCertVerificationError(verify_message=reason):
            return access.distrust(reason)
        case ProxyRefused():
            return f"the proxy in {access.login.proxy_origin} does not connect to {access.server}"
        case Malformed():
            return f"the answer of {access.server} is not valid HTTP: {error}"
        case TimeoutError():
            return f"{access.server}, from {origin}, does not answer"
        case ConnectionRefusedError() | socket.gaierror() | OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH):
            return f"{access.server}, from {origin}, cannot be reached ({_reason(error)})"
    return f"the connection to {access.server} broke ({_reason(error)})"


def _reason(error: Exception) -> str:
    # Only the system's own text: other texts can contain secrets, and asyncio's have addresses in place of the reason.
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower() if error.errno > 0 else str(error.strerror).lower()
    return type(error).__name__
