"""An HTTP proxy between a client and an API server whose connections can be cut, or frozen as a dead network does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class Proxy:
    """A CONNECT proxy on loopback."""

    url: str = ""
    heads: list[bytes] = field(default_factory=list)  # what clients asked for, one for each connection
    flows: set[asyncio.Task[None]] = field(default_factory=set)
    moving: asyncio.Event = field(default_factory=asyncio.Event)

    async def cut(self) -> None:
        """End all connections; new ones are served."""
        for task in list(self.flows):
            task.cancel()
        await asyncio.gather(*self.flows, return_exceptions=True)

    def freeze(self) -> None:
        """Take no more bytes from either side, and tell nobody."""
        self.moving.clear()

    def thaw(self) -> None:
        self.moving.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.flows.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # an end like any other
        finally:
            writer.close()
            self.flows.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        host, _, port = head.split()[1].decode().rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        ways = self._copy(reader, far_writer), self._copy(far_reader, writer)
        tasks = [asyncio.create_task(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # one side's end is the other's
        finally:
            far_writer.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self.moving.wait()
            writer.write(data)
            await writer.drain()


@contextlib.asynccontextmanager
async def running_proxy() -> AsyncIterator[Proxy]:
    """A proxy for as long as the block lasts."""
    proxy = Proxy()
    proxy.thaw()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.cut()
        await server.wait_closed()
