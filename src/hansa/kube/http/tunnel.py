"""Upgraded connections (exec, attach, port-forward) as byte tunnels; SPDY and WebSocket are not interpreted."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from hansa.kube.http.connection import Connection

CHUNK = 2**16  # bytes read at a time from the other connection


class Tunnel:
    """Bytes in both directions. The first `read` returns what the server sent right after its head."""

    def __init__(self, connection: Connection, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self._connection = connection

    async def read(self) -> bytes:
        """The received bytes, at least one; empty at the end."""
        return await self._connection.read_raw()

    async def write(self, data: bytes) -> None:
        """Send; waits while the send buffer is full."""
        await self._connection.write_raw(data)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


Pace = Callable[[int], Awaitable[None]]


async def unpaced(_size: int) -> None:
    """Copy without a limit."""


async def splice(
    tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, pace: Pace = unpaced
) -> None:
    """Copy between a tunnel and another connection until one of them ends; then both are closed.

    `pace` is awaited with the number of bytes before they are written.
    """

    async def up() -> None:
        while data := await reader.read(CHUNK):
            await pace(len(data))
            await tunnel.write(data)

    async def down() -> None:
        while data := await tunnel.read():
            await pace(len(data))
            writer.write(data)
            await writer.drain()

    tasks = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        # Neither SPDY nor WebSocket uses half-closed connections, so both close when one does.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        tunnel.close()
        writer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
