"""One HTTP/1.1 connection to an API server: an exchange at a time, a body that streams, or an upgrade to plain bytes.

A general HTTP client spends more on a request than the rest of Hansa on its answer (docs/decisions has the numbers).
Which connection serves which request is the transport's matter.
"""

import asyncio
import base64
import socket
import ssl
import sys
from collections.abc import Mapping
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from hansa.kube.credentials import Access
from hansa.kube.http import framing
from hansa.kube.http.tls import Secured

CONNECT_DEADLINE = 10.0  # seconds for TCP, a proxy and TLS together
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}  # a dead peer is noticed within a minute
FAR = float("inf")  # as far as anybody knows
MIN_RTT = slice(148, 152)  # in the kernel's struct tcp_info: microseconds
LONGEST_HEAD = 2**16  # bytes
FULL = 2**18  # bytes that nobody has read yet, from which on the other side has to wait
GULP = 0.002  # seconds for which a busy stream is left to fill: waking up for each event costs more than the event


class Stale(ConnectionResetError):
    """The server closed the connection before it began to answer: nothing was done, or nobody knows."""


class ProxyRefused(ConnectionError):
    """The proxy cannot be reached, or does not let us through."""


class Connection(asyncio.Protocol):
    """A connection; its methods are called one after the other."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._come: list[bytes] = []  # what nobody has read yet
        self._size = 0  # of all of it
        self._is_full = False
        self._is_over = False
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._body: framing.Body = framing.Sized(0)
        self._is_kept = False
        self._last_read = 0.0
        self.distance = FAR  # seconds to the other side and back
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def exchange(self, request: bytes) -> tuple[int, Mapping[str, str]]:
        """Send a request, and read the head of its answer."""
        self._transport.write(request)
        status = 100
        while 100 <= status < 200 and status != 101:
            status, headers = framing.parse_head(await self._head())
        self._body = framing.body_of(status, headers)
        self._is_kept = headers.get("Connection", "").lower() != "close" and status != 101
        return status, headers

    async def body(self) -> bytes:
        """The whole body of the answer."""
        pieces = self._fed()
        while not self._body.is_done and await self._more():
            pieces += self._fed()
        self._check_end()
        return b"".join(pieces)

    async def pieces(self) -> list[bytes]:
        """What has come of the body, at least one byte; empty at its end."""
        while not self._body.is_done:
            await self._gulp()
            if not self._come and not await self._more():
                break
            if pieces := self._fed():
                return pieces
        self._check_end()
        return []

    async def read_raw(self) -> bytes:
        """What has come on an upgraded connection, at least one byte; empty at its end."""
        if not self._come:
            await self._more()
        return b"".join(self._taken())

    async def write_raw(self, data: bytes) -> None:
        """Send on an upgraded connection; waits while the other side does not take it."""
        if self._is_over:
            raise ConnectionResetError("the connection is closed")
        self._transport.write(data)
        if self._room is not None:
            await asyncio.shield(self._room)

    async def pass_proxy(self, target: str, proxy: SplitResult) -> None:
        """Ask a proxy for a way to the target; from then on it is as if the target had been dialled."""
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if proxy.username is not None:
            basic = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(basic.encode()).decode()}")
        self._transport.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        try:
            status, _ = framing.parse_head(await self._head())
        except BaseException:
            self.close()
            raise
        if status != 200:
            self.close()
            raise ProxyRefused(f"the proxy answered {status}")

    async def start_tls(self, tls: ssl.SSLContext, server_name: str | None) -> None:
        """Go on in TLS."""
        try:
            secured = Secured(self._transport, self)
            await secured.start(tls, server_name)
        except BaseException:
            self.close()
            raise
        self._transport = secured

    def close(self) -> None:
        """Let go at once; the API server takes no goodbye."""
        self._transport.abort()

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange can follow."""
        return self._is_kept and self._body.is_done and not self._come and not self._is_over

    def _check_end(self) -> None:
        if not self._body.is_done and not isinstance(self._body, framing.Endless):
            raise ConnectionResetError("the answer broke off")

    async def _head(self) -> bytes:
        come = b""
        while (end := come.find(b"\r\n\r\n")) < 0:
            if len(come) >= LONGEST_HEAD:
                raise framing.Malformed("a head without end")
            if not self._come and not await self._more():
                raise ConnectionResetError("the answer broke off") if come else Stale("no answer")
            come += b"".join(self._taken())
        if rest := come[end + 4 :]:
            self._come, self._size = [rest], len(rest)
        return come[:end]

    async def _more(self) -> bool:
        """Wait for bytes; False when there will be none."""
        if self._is_over:
            return False
        self._news = asyncio.get_running_loop().create_future()
        try:
            await self._news
        finally:
            self._news = None
        return bool(self._come)

    async def _gulp(self) -> None:
        """Let a busy stream fill up for a moment."""
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
        """All that nobody has read yet."""
        come, self._come, self._size = self._come, [], 0
        if self._is_full:
            self._is_full = False
            _resume(self._transport)
        return come

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are of another family

    def data_received(self, data: bytes) -> None:
        self._come.append(data)
        self._size += len(data)
        if self._size >= FULL and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        _wake(self._news)

    def eof_received(self) -> None:
        self._is_over = True
        _wake(self._news)

    def connection_lost(self, error: Exception | None) -> None:
        self._is_over = True
        _wake(self._news)
        _wake(self._room)
        _wake(self.closed)
        # Each would keep the other, and the buffers of TLS, until the garbage collector comes.
        self._transport = _Lost()

    def pause_writing(self) -> None:
        self._room = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        _wake(self._room)
        self._room = None


class _Lost(asyncio.Transport):
    """Where a transport was: what is sent is lost, and nothing comes."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def abort(self) -> None: ...

    def pause_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return True


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


def _resume(transport: asyncio.Transport) -> None:
    if not transport.is_closing():  # uvloop's would raise
        transport.resume_reading()


async def connect(access: Access) -> Connection:
    """Open a connection as the access says: TLS or not, by a proxy or not."""
    server = urlsplit(access.server)
    async with asyncio.timeout(CONNECT_DEADLINE):
        connection = await (_dial_proxy(access.proxy, server) if access.proxy else _dial(server))
        if access.tls is not None:
            await connection.start_tls(access.tls, access.server_name or server.hostname)
        return connection


async def _dial(address: SplitResult) -> Connection:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(address.hostname, _port(address), type=socket.SOCK_STREAM)
    # Both address families are tried side by side: one of them often leads nowhere.
    connected = await start_connection(addresses, happy_eyeballs_delay=0.25, interleave=1, socket_factory=_socket)
    _, connection = await loop.create_connection(Connection, sock=connected)
    connection.distance = _distance(connected)
    return connection


async def _dial_proxy(url: str, server: SplitResult) -> Connection:
    proxy = urlsplit(url)
    host = f"[{server.hostname}]" if ":" in (server.hostname or "") else server.hostname
    try:
        connection = await _dial(proxy)
        if proxy.scheme == "https":
            await connection.start_tls(ssl.create_default_context(), proxy.hostname)
        await connection.pass_proxy(f"{host}:{_port(server)}", proxy)
        connection.distance = FAR  # what is behind it may be anywhere
    except OSError as error:
        raise ProxyRefused(error.errno, error.strerror) from None
    return connection


def _distance(connected: socket.socket) -> float:
    """What the kernel saw of it when it connected: a server that is busy is no farther away."""
    if not sys.platform.startswith("linux"):
        return FAR
    told = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, MIN_RTT.stop)
    return int.from_bytes(told[MIN_RTT], sys.byteorder) / 1e6 if len(told) >= MIN_RTT.stop else FAR


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
