"""One HTTP/1.1 connection to an API server: one exchange at a time, a streamed body, or an upgrade to plain bytes.

Used by the transport; it takes less CPU and memory than a general HTTP client (docs/decisions/0007 has the figures).
Which connection serves which request is left to the pool.
"""

import asyncio
import base64
import socket
import ssl
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from hansa.kube.credentials import Access
from hansa.kube.http import framing
from hansa.kube.http.framing import Head
from hansa.kube.http.tls import Secured

CONNECT_DEADLINE = 10.0  # seconds for TCP, a proxy and TLS together
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}  # a dead peer is noticed within a minute
LONGEST_HEAD = 2**16  # bytes
MOST_INTERIM = 8  # answers with a 1xx status before the final one; an API server sends none
FULL = 2**18  # received bytes at which the socket is no longer read until they are: bounds the memory of a connection
GULP = 0.002  # seconds between two reads of a busy stream: an event takes 38 µs of CPU instead of 63


class TooLong(ConnectionError):
    """The body exceeds the limit of the caller."""


class Stale(ConnectionResetError):
    """The server closed the connection before it sent an answer; it may have processed the request or not."""


class ProxyRefused(ConnectionError):
    """The proxy cannot be reached, or refuses the connection to the server."""


class Connection(asyncio.Protocol):
    """A connection; its methods are called one at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._received: list[bytes] = []  # not read yet
        self._size = 0  # bytes in `_received`
        self._is_full = False
        self._is_over = False
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._body: framing.Body = framing.Sized(0)
        self._is_kept = False
        self._last_read = 0.0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def exchange(self, request: bytes, *, may_upgrade: bool = False) -> Head:
        """Send a request, and read the head of its answer."""
        self._transport.write(request)
        head = await self._final_head()
        if head.status == 101 and not may_upgrade:
            raise framing.Malformed("the server switches protocols without a request for it")
        self._body = framing.body_of(head)
        self._is_kept = head.is_kept and head.status != 101
        return head

    async def body(self, limit: int) -> bytes:
        """The whole body of the answer; raises TooLong if it has more bytes than the limit."""
        if isinstance(self._body, framing.Sized) and self._body.left > limit:
            raise TooLong
        first = b"".join(self._fed())
        if self._body.is_done and len(first) <= limit:
            return first
        body = bytearray(first)  # a list of many small pieces would take more memory than their bytes
        while len(body) <= limit and not self._body.is_done and await self._more():
            for piece in self._fed():
                body += piece
        if len(body) > limit:
            raise TooLong
        self._check_end()
        return bytes(body)

    async def pieces(self) -> list[bytes]:
        """The received pieces of the body, at least one byte; empty at its end."""
        while not self._body.is_done:
            await self._gulp()
            if not self._received and not await self._more():
                break
            if pieces := self._fed():
                return pieces
        self._check_end()
        return []

    async def read_raw(self) -> bytes:
        """The received bytes of an upgraded connection, at least one; empty at its end."""
        if not self._received:
            await self._more()
        return b"".join(self._taken())

    async def write_raw(self, data: bytes) -> None:
        """Send on an upgraded connection; waits while the send buffer is full."""
        if self._is_over:
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)
        if self._writable is not None:
            await asyncio.shield(self._writable)

    async def pass_proxy(self, target: str, proxy: SplitResult) -> None:
        """Have a proxy connect to the target; the connection is then one to the target."""
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if proxy.username is not None:
            basic = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(basic.encode()).decode()}")
        self._transport.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        try:
            head = await self._final_head()
            if head.status != 200:
                raise ProxyRefused(f"the proxy answered {head.status}")
            if self._received:  # they would count as the first bytes of an answer, although TLS did not protect them
                raise framing.Malformed("the proxy sent bytes before the server could")
        except BaseException:
            self.close()
            raise

    async def start_tls(self, tls: ssl.SSLContext, server_name: str | None) -> None:
        """Start TLS; all bytes from here on are encrypted."""
        try:
            secured = Secured(self._transport, self)
            await secured.start(tls, server_name)
        except BaseException:
            self.close()
            raise
        self._transport = secured

    def close(self) -> None:
        """Close at once, without a close notification of TLS: an API server needs none."""
        self._transport.abort()

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange can follow. Bytes that no request explains must not become its answer."""
        body = self._body
        return self._is_kept and body.is_done and not (body.has_surplus or self._received or self._is_over)

    def _check_end(self) -> None:
        if not self._body.is_done and not isinstance(self._body, framing.Endless):
            raise ConnectionResetError("the answer is incomplete")

    async def _final_head(self) -> Head:
        """The head of the answer, after those with a 1xx status."""
        for _ in range(MOST_INTERIM + 1):
            head = framing.parse_head(await self._head())
            if head.status >= 200 or head.status == 101:
                return head
        raise framing.Malformed(f"there are more than {MOST_INTERIM} answers with a 1xx status")

    async def _head(self) -> bytes:
        head, searched = bytearray(), 0
        while (end := head.find(b"\r\n\r\n", searched)) < 0:
            if len(head) > LONGEST_HEAD:
                break
            if not self._received and not await self._more():
                raise ConnectionResetError("the answer is incomplete") if head else Stale("no answer")
            searched = max(0, len(head) - 3)  # all of it each time would be quadratic for a head that comes in bytes
            head += b"".join(self._taken())
        if not 0 <= end <= LONGEST_HEAD:
            raise framing.Malformed(f"the head has more than {LONGEST_HEAD} bytes")
        if rest := bytes(head[end + 4 :]):
            self._received, self._size = [rest], len(rest)
        return bytes(head[:end])

    async def _more(self) -> bool:
        """Wait for bytes; False at the end of the connection."""
        if self._is_over:
            return False
        self._readable = asyncio.get_running_loop().create_future()
        try:
            await self._readable
        finally:
            self._readable = None
        return bool(self._received)

    async def _gulp(self) -> None:
        """Wait a moment if the stream is busy, so that more events are received."""
        loop = asyncio.get_running_loop()
        is_busy = loop.time() - self._last_read < GULP
        if is_busy and self._size < FULL // 2 and not self._is_over:
            self._transport.pause_reading()
            await asyncio.sleep(GULP)
            _resume(self._transport)
        self._last_read = loop.time()

    def _fed(self) -> list[bytes]:
        return [piece for data in self._taken() for piece in self._body.feed(data)]

    def _taken(self) -> list[bytes]:
        """All received bytes that were not read yet."""
        taken, self._received, self._size = self._received, [], 0
        if self._is_full:
            self._is_full = False
            _resume(self._transport)
        return taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports have another base class

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._size += len(data)
        if self._size >= FULL and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        _wake(self._readable)

    def eof_received(self) -> None:
        self._is_over = True
        _wake(self._readable)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over = True
        _wake(self._readable)
        _wake(self._writable)
        _wake(self.closed)
        # A reference cycle would keep both, and the buffers of TLS, until the garbage collector runs.
        self._transport = _Lost()

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._writable)
        self._writable = None


class _Lost(asyncio.Transport):
    """The transport of a lost connection: it sends nothing and receives nothing."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return True


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _resume(transport: asyncio.Transport) -> None:
    if not transport.is_closing():  # where uvloop's transports raise
        transport.resume_reading()


async def connect(access: Access) -> Connection:
    """Open a connection: with or without TLS, directly or by a proxy."""
    server = urlsplit(access.server)
    async with asyncio.timeout(CONNECT_DEADLINE):
        connection = await (_dial_proxy(access.proxy, server) if access.proxy else _dial(server))
        if access.tls is not None:
            await connection.start_tls(access.tls, access.server_name or server.hostname)
        return connection


async def _dial(address: SplitResult) -> Connection:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(address.hostname, _port(address), type=socket.SOCK_STREAM)
    # Both address families are tried at the same time: often only one of them works.
    connected = await start_connection(addresses, happy_eyeballs_delay=0.25, interleave=1, socket_factory=_socket)
    _, connection = await loop.create_connection(Connection, sock=connected)
    return connection


async def _dial_proxy(url: str, server: SplitResult) -> Connection:
    proxy = urlsplit(url)
    host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
    try:
        connection = await _dial(proxy)
        if proxy.scheme == "https":
            await connection.start_tls(ssl.create_default_context(), proxy.hostname)
        await connection.pass_proxy(f"{host}:{_port(server)}", proxy)
    except OSError as error:
        raise ProxyRefused(error.errno, error.strerror) from None
    return connection


def _port(address: SplitResult) -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def _socket(address: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if option := getattr(socket, name, None):  # macOS lacks some
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
