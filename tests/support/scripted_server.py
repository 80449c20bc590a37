"""A server that runs a script for each connection, for failures that real API servers show only in a crash."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run a server for as long as the block lasts; its port. It closes a connection when the script ends."""
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def treat(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await script(reader, writer)
        writer.close()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections[asyncio.create_task(treat(reader, writer))] = writer

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as listening:
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            for task, writer in connections.items():
                task.cancel()
                writer.transport.abort()
            await asyncio.gather(*connections, return_exceptions=True)


async def request_head(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request."""
    return await reader.readuntil(b"\r\n\r\n")
