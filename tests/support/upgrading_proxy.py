"""A small HTTP proxy to an API server that forwards upgraded connections through tunnels of `hansa.kube`."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.http import tunnel


@contextlib.asynccontextmanager
async def serving(client: Client) -> AsyncIterator[str]:
    """Serve on loopback with the client's credentials; the value is the proxy's URL."""
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await _serve(client, reader, writer)
        writer.close()
        connections.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head[:-4].split("\r\n")
    method, target, _ = first.split(" ")
    headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    try:
        if any(name.lower() == "upgrade" for name, _ in headers):
            await _tunnel(client, method, target, headers, reader, writer)
        else:
            answer = await client.request(method, target)
            kind = answer.headers["Content-Type"]
            _reply(writer, 200, kind, answer.body)
    except errors.ApiError as error:
        _reply(writer, 500, "text/plain", str(error).encode())
    await writer.drain()


async def _tunnel(
    client: Client,
    method: str,
    target: str,
    headers: list[tuple[str, str]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    opened = await client.tunnel(method, target, headers=headers)
    answered = "".join(f"{name}: {value}\r\n" for name, value in opened.headers.items())
    writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{answered}\r\n".encode())
    await tunnel.splice(opened, reader, writer)


def _reply(writer: asyncio.StreamWriter, status: int, kind: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
