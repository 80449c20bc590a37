"""Ports for servers on loopback, outside the range that the kernel gives to outgoing connections."""

import asyncio
import contextlib
import socket
import zlib
from collections.abc import Collection, Iterator

from hansa.runtime.errors import HansaError

LOOPBACK = "127.0.0.1"
# Below Linux' ephemeral ports (from 32768) and below Kubernetes' node ports (from 30000).
FIRST, LAST = 20000, 29999
RELEASE_SECONDS = 2.0


class NoPort(HansaError):
    """A port that is needed is taken."""


def choose(count: int, *, taken: Collection[int], seed: str) -> list[int]:
    """Free ports. Different seeds begin at different places, so that two state folders rarely want the same."""
    free = (port for port in _candidates(seed) if port not in taken and is_free(port))
    ports = [port for port, _ in zip(free, range(count), strict=False)]
    if len(ports) < count:
        raise NoPort(f"no {count} free ports are left between {FIRST} and {LAST} on {LOOPBACK}")
    return ports


async def released(port: int) -> None:
    """Give a process that was just killed the moment that the kernel needs to take its port away."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(RELEASE_SECONDS):
            while not is_free(port):
                await asyncio.sleep(RELEASE_SECONDS / 50)


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _candidates(seed: str) -> Iterator[int]:
    span = LAST - FIRST + 1
    start = zlib.crc32(seed.encode()) % span
    return (FIRST + (start + i) % span for i in range(span))
