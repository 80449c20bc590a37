"""Upgraded connections (exec, attach, port-forward) as byte tunnels: SPDY and WebSocket alike, nothing is interpreted.

aiohttp knows only WebSockets, so the request is written and the answer's head read by hand, on a connection that is
used once.
"""

import asyncio
import base64
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from multidict import CIMultiDict

from hansa.kube import transport
from hansa.kube.credentials import Access
from hansa.kube.transport import Request, Response

LONGEST_HEAD = 2**16  # bytes; what Go's servers accept, too, is not much more
LONGEST_ERROR = 2**20  # bytes of a refusal's body
CHUNK = 2**16
OURS = frozenset({"host", "authorization", "content-length", "transfer-encoding"})  # never taken from the caller


class Tunnel:
    """Bytes both ways. What the server sent right after its head comes first out of `read`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """What has come, at least one byte; empty at the end."""
        return await self._reader.read(CHUNK)

    async def write(self, data: bytes) -> None:
        """Send; waits while the other side does not take it."""
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        """Let go of the connection."""
        self._writer.close()


async def splice(tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Join a tunnel to another connection until one of them ends; then both are closed."""

    async def up() -> None:
        while data := await reader.read(CHUNK):
            await tunnel.write(data)

    async def down() -> None:
        while data := await tunnel.read():
            writer.write(data)
            await writer.drain()

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        # Neither SPDY nor WebSocket uses half-closed connections, and TLS has none: the first end is the end.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        tunnel.close()
        writer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def upgrade(request: Request) -> Response:
    """A transport: 101 has the tunnel as its stream, other answers have their body."""
    access = request.access
    if access is None:
        raise ValueError("a request needs an access: wrap the transport with `authorized`")
    try:
        reader, writer = await _connect(access)
        try:
            response = await _exchange(request, access, reader, writer)
        except BaseException:
            writer.close()
            raise
    except (*transport.NETWORK_ERRORS, ValueError) as error:
        raise transport.unreachable(error, access, request.doing) from None
    if response.stream is None:
        writer.close()
    return response


async def _exchange(
    request: Request, access: Access, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Response:
    server = urlsplit(access.server)
    asked = [pair for pair in request.headers if pair[0].lower() not in OURS]
    length = [("Content-Length", str(len(request.body)))] if request.method != "GET" else []
    lines = [
        f"{request.method} {server.path}{request.target} HTTP/1.1",
        *(f"{name}: {value}" for name, value in [("Host", server.netloc), *asked, *length, *access.headers]),
    ]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header with a line break")
    writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + request.body)
    await writer.drain()
    status, headers = await _head(reader)
    if status == 101:
        return Response(status, headers, stream=Tunnel(reader, writer, headers))
    return Response(status, headers, await _body(reader, headers))


async def _connect(access: Access) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    server = urlsplit(access.server)
    async with asyncio.timeout(transport.CONNECT_DEADLINE):
        if access.proxy:
            return await _connect_by_proxy(access, server, urlsplit(access.proxy))
        if access.tls is None:
            return await asyncio.open_connection(server.hostname, server.port or 80, limit=LONGEST_HEAD)
        return await asyncio.open_connection(
            server.hostname,
            server.port or 443,
            ssl=access.tls,
            server_hostname=access.server_name or server.hostname,
            limit=LONGEST_HEAD,
        )


async def _connect_by_proxy(
    access: Access, server: SplitResult, proxy: SplitResult
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    is_tls = proxy.scheme == "https"
    reader, writer = await asyncio.open_connection(
        proxy.hostname, proxy.port or (443 if is_tls else 80), ssl=is_tls or None, limit=LONGEST_HEAD
    )
    target = f"{server.hostname}:{server.port or (443 if access.tls else 80)}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        basic = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(basic.encode()).decode()}")
    writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
    status, _ = await _head(reader)
    if status != 200:
        writer.close()
        raise ConnectionRefusedError(0, f"the proxy answered {status}")
    if access.tls is not None:
        await writer.start_tls(access.tls, server_hostname=access.server_name or server.hostname)
    return reader, writer


async def _head(reader: asyncio.StreamReader) -> tuple[int, CIMultiDict[str]]:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError:
        raise ValueError("an endless head") from None
    first, *lines = head[:-4].split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise ValueError("not HTTP")
    pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return int(rest[:3]), CIMultiDict(pairs)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("Transfer-Encoding", "").lower() == "chunked":
        return await _chunks(reader)
    length = headers.get("Content-Length", "")
    size = min(int(length), LONGEST_ERROR) if length.isdigit() else 0
    return await reader.readexactly(size)


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        if len(body) + size > LONGEST_ERROR:
            raise ValueError("an endless refusal")
        body += (await reader.readexactly(size + 2))[:-2]
    return body
