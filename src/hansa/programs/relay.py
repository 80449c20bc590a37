"""Relays TCP connections from one network namespace into another; runs as a program of its own.

Used so that a port on loopback reaches the API server of a cluster in other namespaces, or the other way round. It is
started by the path of this file and imports only the standard library, to keep its memory small.
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
class NetnsAddress:
    """An address in a named network namespace; an empty name is the namespace of this process."""

    netns: str
    address: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "NetnsAddress":
        """Read NETNS:ADDRESS:PORT."""
        netns, address, port = text.split(":")
        return cls(netns, address, int(port))

    def __str__(self) -> str:
        return f"{self.netns}:{self.address}:{self.port}"

    def open(self) -> socket.socket:
        """A TCP socket of that namespace. A socket stays in the namespace in which it was created."""
        with _inside(self.netns):
            created = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        created.setblocking(False)
        created.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return created


def command(listen: NetnsAddress, dial: NetnsAddress) -> list[str]:
    """The command line of a relay that listens on one address and connects to another."""
    return [sys.executable, "-I", "-S", __file__, "--listen", str(listen), "--dial", str(dial)]


async def serve(listen: NetnsAddress, dial: NetnsAddress) -> None:
    """Accept and relay connections until cancelled."""
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    with listen.open() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((listen.address, listen.port))
        server.listen(BACKLOG)
        while True:
            client = await _accept(server)
            task = loop.create_task(_relay(client, dial))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def _accept(server: socket.socket) -> socket.socket:
    while True:
        try:
            client, _ = await asyncio.get_running_loop().sock_accept(server)
        except OSError:
            # Out of file descriptors, or the client has disconnected: go on accepting.
            await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client


async def _relay(client: socket.socket, dial: NetnsAddress) -> None:
    # A connection that fails on one side is closed on both: recovery is up to client and server.
    with client, dial.open() as server, contextlib.suppress(OSError):
        async with asyncio.timeout(DIAL_SECONDS):
            await asyncio.get_running_loop().sock_connect(server, (dial.address, dial.port))
        both = [asyncio.create_task(_copy(client, server)), asyncio.create_task(_copy(server, client))]
        try:
            await asyncio.gather(*both)
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)


async def _copy(source: socket.socket, sink: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while chunk := await loop.sock_recv(source, CHUNK_BYTES):
        await loop.sock_sendall(sink, chunk)
    sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def _inside(netns: str) -> Iterator[None]:
    """Enter a network namespace for the block, which must not await: setns applies to the thread."""
    if not netns:
        yield
        return
    with Path("/proc/thread-self/ns/net").open("rb") as own, Path(f"/run/netns/{netns}").open("rb") as other:
        _enter(other.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def main() -> None:
    """Relay until killed."""
    parser = argparse.ArgumentParser(prog="relay", description="Relay TCP connections between network namespaces.")
    parser.add_argument(
        "--listen", type=NetnsAddress.parse, required=True, metavar="NETNS:ADDRESS:PORT", help="address to listen on"
    )
    parser.add_argument(
        "--dial", type=NetnsAddress.parse, required=True, metavar="NETNS:ADDRESS:PORT", help="address to connect to"
    )
    arguments = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        asyncio.run(serve(arguments.listen, arguments.dial))
    except OSError as error:
        sys.exit(f"cannot listen on {arguments.listen}: {error.strerror}")


if __name__ == "__main__":
    main()
