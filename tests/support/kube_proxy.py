"""An HTTP proxy to an API server whose connections can be counted, cut, or frozen as a dead network does."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml


@dataclass(slots=True)
class Proxy:
    """A CONNECT proxy on loopback. While it `is_away` it accepts connections and never responds."""

    url: str = ""
    heads: list[bytes] = field(default_factory=list)  # what clients asked for, one for each connection
    flows: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)
    moving: asyncio.Event = field(default_factory=asyncio.Event)
    cuts: int = 0
    is_away: bool = False

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self.flows)

    async def cut(self, share: float = 1.0, chance: random.Random | None = None) -> None:
        """Reset all connections, or about a share of them; new ones are served."""
        doomed = [task for task in self.flows if chance is None or chance.random() < share]
        self.cuts += len(doomed)
        for task in doomed:
            self.flows[task].transport.abort()
            task.cancel()
        await asyncio.gather(*doomed, return_exceptions=True)

    def freeze(self) -> None:
        """Read no more bytes from either side, and keep the connections open."""
        self.moving.clear()

    def thaw(self) -> None:
        self.moving.set()

    def kubeconfig(self, original: Path, folder: Path) -> Path:
        """A kubeconfig with the proxy as its proxy-url."""
        config = yaml.safe_load(original.read_text())
        config["clusters"][0]["cluster"]["proxy-url"] = self.url
        path = folder / "through-the-proxy"
        path.write_text(yaml.safe_dump(config))
        return path

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.flows[task] = writer
        try:
            if not self.is_away:
                await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # an end like any other
        finally:
            writer.close()
            self.flows.pop(task)

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
