"""A relay of TCP connections from one network namespace into another, run as a program of its own.

It is given no package and no dependency, so that a door costs little: it is started by the path of this file.
"""

import argparse
import asyncio
import contextlib
import ctypes
import os
import resource
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CLONE_NEWNET = 0x40000000
CHUNK_BYTES = 256 * 1024
BACKLOG = 1024
DIAL_SECONDS = 10.0
ACCEPT_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a named network namespace; without a name, in the one where the door was started."""

    netns: str
    address: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read NETNS:ADDRESS:PORT."""
        netns, address, port = text.split(":")
        return cls(netns, address, int(port))

    def __str__(self) -> str:
        return f"{self.netns}:{self.address}:{self.port}"

    def open(self) -> socket.socket:
        """A TCP socket of that namespace: a socket stays where it was made, whoever uses it later."""
        with _inside(self.netns):
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made


def command(listen: Place, dial: Place) -> list[str]:
    """The command line of a door that listens at one place and dials another."""
    return [sys.executable, "-I", "-S", __file__, "--listen", str(listen), "--dial", str(dial)]


async def serve(listen: Place, dial: Place) -> None:
    """Relay connections until cancelled."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    with listen.open() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((listen.address, listen.port))
        server.listen(BACKLOG)
        while True:
            client = await _accept(server)
            task = loop.create_task(_join(client, dial))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def _accept(server: socket.socket) -> socket.socket:
    while True:
        try:
            client, _ = await asyncio.get_running_loop().sock_accept(server)
        except OSError:
            # Out of file descriptors, or the caller has gone: the door stays open for the others.
            await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client


async def _join(client: socket.socket, dial: Place) -> None:
    # A connection that breaks is closed on both sides: what that means is for the two who speak through us.
    with client, dial.open() as server, contextlib.suppress(OSError):
        async with asyncio.timeout(DIAL_SECONDS):
            await asyncio.get_running_loop().sock_connect(server, (dial.address, dial.port))
        both = [asyncio.create_task(_pour(client, server)), asyncio.create_task(_pour(server, client))]
        try:
            await asyncio.gather(*both)
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)


async def _pour(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while chunk := await loop.sock_recv(source, CHUNK_BYTES):
        await loop.sock_sendall(sink, chunk)
    sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def _inside(netns: str) -> Iterator[None]:
    """Be in a network namespace for as long as the block lasts; it must not await."""
    if not netns:
        yield
        return
    with Path("/proc/thread-self/ns/net").open("rb") as home, Path(f"/run/netns/{netns}").open("rb") as there:
        _enter(there.fileno())
        try:
            yield
        finally:
            _enter(home.fileno())


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="door")
    parser.add_argument("--listen", type=Place.parse, required=True, metavar="NETNS:ADDRESS:PORT")
    parser.add_argument("--dial", type=Place.parse, required=True, metavar="NETNS:ADDRESS:PORT")
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        asyncio.run(serve(arguments.listen, arguments.dial))
    except OSError as error:
        sys.exit(f"the door at {arguments.listen} cannot be opened: {error.strerror}")


if __name__ == "__main__":
    main()
