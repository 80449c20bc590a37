"""Requests and answers on the wire: `async (Request) -> Response`, and wrappers of that shape that compose.

One wrapper per concern: credentials, requests in flight, the server's "come back later". What a request means, and
which answers are errors, is the client's.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import aiohttp
import yarl

from hansa.kube.credentials import Access, Credentials
from hansa.kube.errors import Unreachable
from hansa.runtime.clock import Clock

READ_BUFFER = 2**18  # bytes; a watch sends many small chunks, and a small buffer pauses the socket too often
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}  # a dead peer is noticed within a minute
CONNECT_DEADLINE = 10.0  # seconds for TCP and TLS together


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

    async def read(self) -> bytes:
        """What has come, at least one byte; empty at the end."""

    def close(self) -> None:
        """Let go of the connection."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; the body of a stream that was accepted is in `stream`, all others are read."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    stream: Stream | None = None


Transport = Callable[[Request], Awaitable[Response]]


class Http:
    """The innermost transport: aiohttp, one pool of connections for one API server."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, request: Request) -> Response:
        access = request.access
        if access is None:
            raise ValueError("a request needs an access: wrap the transport with `authorized`")
        try:
            response = await self._opened().request(
                request.method,
                yarl.URL(access.server + request.target, encoded=True),
                headers=request.headers + access.headers,
                data=request.body or None,
                ssl=access.tls or True,
                server_hostname=access.server_name,
                proxy=access.proxy,
                allow_redirects=False,
            )
            if request.is_stream and response.status < 300:
                return Response(response.status, response.headers, stream=_Body(response, access, request.doing))
            async with response:
                return Response(response.status, response.headers, await response.read())
        except NETWORK_ERRORS as error:
            raise unreachable(error, access, request.doing) from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket, keepalive_timeout=60),
                # Deadlines are the client's; only connecting has one here, so that a watch has it as well.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE),
                skip_auto_headers=("User-Agent", "Content-Type"),
                headers={"Accept-Encoding": "identity"},  # gzip costs both sides more CPU than it saves nearby
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                read_bufsize=READ_BUFFER,
                trust_env=False,
            )
        return self._session


class _Body:
    def __init__(self, response: aiohttp.ClientResponse, access: Access, doing: str) -> None:
        self._response = response
        self._access = access
        self._doing = doing

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except NETWORK_ERRORS as error:
            raise unreachable(error, self._access, self._doing) from None

    def close(self) -> None:
        self._response.close()


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


NETWORK_ERRORS = (aiohttp.ClientError, OSError, EOFError)  # TimeoutError and ssl.SSLError are OSErrors


def unreachable(error: Exception, access: Access, doing: str) -> Unreachable:
    """One sentence for what the network raised. Raise it `from None`: causes can hold headers and proxy passwords."""
    return Unreachable(f"cannot {doing}: {_why(error, access)}")


def _why(error: Exception, access: Access) -> str:
    origin = access.login.server_origin
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=inner):
            return access.distrust(getattr(inner, "verify_message", "") or "unknown reason")
        case ssl.SSLCertVerificationError(verify_message=reason):
            return access.distrust(reason)
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return f"the proxy in {access.login.proxy_origin} does not let us through to {access.server}"
        case aiohttp.ClientConnectorError(os_error=inner):
            return f"{access.server}, from {origin}, cannot be reached ({_reason(inner)})"
        case TimeoutError():
            return f"{access.server}, from {origin}, does not answer"
    return f"the connection to {access.server} broke ({_reason(error)})"


def _reason(error: Exception) -> str:
    # Only the system's own words: other texts can hold headers. asyncio puts addresses where they should be.
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower() if error.errno > 0 else str(error.strerror).lower()
    return type(error).__name__


def _socket(address: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if option := getattr(socket, name, None):  # macOS lacks some
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
