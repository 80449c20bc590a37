"""Chooses free ports on loopback, outside the kernel's range for outgoing connections.

Used for servers that have no fixed port. Recording which port was chosen is left to callers.
"""

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


class PortUnavailable(HansaError):
    """No port is free, or the requested port is in use."""


def choose(count: int, *, taken: Collection[int], seed: str) -> list[int]:
    """Choose free ports. The seed decides where the search begins, so that two state folders rarely compete."""
    free = (port for port in _candidates(seed) if port not in taken and is_free(port))
    ports = [port for port, _ in zip(free, range(count), strict=False)]
    if len(ports) < count:
        raise PortUnavailable(f"fewer than {count} ports between {FIRST} and {LAST} are free on {LOOPBACK}")
    return ports


async def wait_released(port: int) -> None:
    """Wait until the kernel has released the port of a process that was just killed, for at most two seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(RELEASE_SECONDS):
            while not is_free(port):
                await asyncio.sleep(RELEASE_SECONDS / 50)


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
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
