"""A loopback proxy between a client and an API server whose connections can be counted and cut."""

import asyncio
import contextlib
import random
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path

import yaml

LOOPBACK = "127.0.0.1"


class Proxy:
    """Forwards bytes to one port, both ways."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.cuts = 0
        self.is_away = False

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._writers)

    def cut(self, share: float, randomness: random.Random) -> None:
        """Reset about that share of the connections, without a goodbye."""
        for writer in [one for one in self._writers if randomness.random() < share]:
            writer.transport.abort()
            self.cuts += 1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        self._writers.add(writer)
        try:
            if self.is_away:
                return
            upper_reader, upper_writer = await asyncio.open_connection(LOOPBACK, self._target)
            ways = [_pour(reader, upper_writer), _pour(upper_reader, writer)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            upper_writer.transport.abort()
        except OSError:
            pass  # the server is away: the client sees a closed connection
        finally:
            writer.transport.abort()
            self._writers.discard(writer)


@contextlib.asynccontextmanager
async def proxy(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    """A proxy before the server of a kubeconfig, and a kubeconfig that leads through it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    carrier = Proxy(urllib.parse.urlsplit(cluster["server"]).port or 443)
    server = await asyncio.start_server(carrier.serve, LOOPBACK, 0)
    async with server:
        carrier.port = server.sockets[0].getsockname()[1]
        cluster["server"] = f"https://{LOOPBACK}:{carrier.port}"
        path = folder / "through-the-proxy"
        path.write_text(yaml.safe_dump(config))
        yield carrier, path
        carrier.cut(1.0, random.Random(0))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
