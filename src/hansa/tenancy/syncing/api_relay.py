"""Relays bytes from pods to the API servers of their tenants, where the network has no route but this program has one.

Each tenant has a port. TLS is between the pod and the API server: the relay sees neither tokens nor requests. Which
tenants need it is decided by `super_clusters`.
"""

import asyncio
import contextlib
import hashlib
import logging
import resource
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hansa.engine.registry import ClusterRegistry
from hansa.model.translation.tenant.tenant_settings import ApiEndpoint
from hansa.runtime import clock, metrics
from hansa.runtime.bandwidth import Bandwidth
from hansa.runtime.errors import HansaError
from hansa.tenancy.syncing.members import Tenancy

log = logging.getLogger(__name__)
HTTPS = 443
DIAL_SECONDS = 10.0
CHUNK_BYTES = 64 * 1024
MOST_CONNECTIONS = 1000  # of one tenant, so that others have theirs
BYTES_PER_SECOND = 50 * 1024 * 1024  # of one tenant
SHARE_OF_FILES = 4  # one connection for this many open files that the process may have; each connection takes two
TRIED_PORTS = 100  # until there is no free one


class CannotListen(HansaError):
    """The address is not one of this machine, or has no free port."""


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """The address of the relay, and its ports. A tenant keeps its port over restarts if it is free."""

    address: str
    ports: range = range(20000, 30000)


@dataclass(slots=True)
class _Door:
    """The port of one tenant, and where it leads."""

    target: tuple[str, int]
    bandwidth: Bandwidth
    port: int = 0
    server: asyncio.Server | None = None
    connections: set[asyncio.Task[None]] = field(default_factory=set)


class ApiRelay:
    """The ports of all tenants."""

    def __init__(self, settings: RelaySettings, *, clock: clock.Clock, metrics: metrics.Registry) -> None:
        self._settings, self._clock = settings, clock
        self._doors: dict[str, _Door] = {}
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, files // SHARE_OF_FILES)
        gauge = metrics.gauge(
            "hansa_api_relay_connections", "Connections of pods to the API server of their tenant.", labels=["cluster"]
        )
        gauge.read(self._count)

    async def endpoint(self, tenancy: Tenancy) -> ApiEndpoint:
        """Where pods reach the API server of a tenant through the relay."""
        key, url = tenancy.owner.key, urlsplit(tenancy.server)
        target = (url.hostname or "", url.port or HTTPS)
        door = self._doors.get(key)
        if door is None:
            door = self._doors[key] = _Door(target, Bandwidth(BYTES_PER_SECOND, clock=self._clock))
            try:
                await self._listen(key, door)
            except BaseException:
                del self._doors[key]
                raise
        door.target = target
        return ApiEndpoint(self._settings.address, door.port)

    async def run(self, registry: ClusterRegistry) -> None:
        """Close the ports of tenants that left, until cancelled; then close all."""
        changed = asyncio.Event()
        end = registry.listen(changed.set)
        try:
            while True:
                changed.clear()
                for key in self._doors.keys() - registry.clusters.keys():
                    await self._close(key)
                await changed.wait()
        finally:
            end()
            for key in list(self._doors):
                await self._close(key)

    async def _listen(self, key: str, door: _Door) -> None:
        ports, first = self._settings.ports, int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
        reason = ""
        for attempt in range(min(TRIED_PORTS, len(ports))):
            door.port = ports[(first + attempt) % len(ports)]
            try:
                door.server = await asyncio.start_server(
                    lambda reader, writer: self._accept(door, reader, writer),
                    self._settings.address,
                    door.port,
                    limit=CHUNK_BYTES,
                )
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                return
        raise CannotListen(
            f"--api-relay-address: cannot listen at {self._settings.address}, port {ports[0]} to {ports[-1]}: {reason}"
        )

    async def _accept(self, door: _Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        total = sum(len(one.connections) for one in self._doors.values())
        if len(door.connections) >= MOST_CONNECTIONS or total >= self._most:
            writer.transport.abort()
            return
        door.connections.add(task)
        try:
            await _relay(door, reader, writer)
        finally:
            door.connections.discard(task)

    async def _close(self, key: str) -> None:
        door = self._doors.pop(key)
        if door.server is not None:
            door.server.close()
        for one in door.connections:
            one.cancel()
        if door.connections:
            await asyncio.wait(door.connections)

    def _count(self) -> Mapping[tuple[str, ...], float]:
        return {(key,): float(len(door.connections)) for key, door in self._doors.items()}


async def _relay(door: _Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Relay one connection. One that fails on one side is closed on both: recovery is up to client and server."""
    with contextlib.closing(writer), contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(DIAL_SECONDS):
            from_server, to_server = await asyncio.open_connection(*door.target, limit=CHUNK_BYTES)
        with contextlib.closing(to_server):
            for one in (writer, to_server):
                _keep_alive(one)
            ways = [
                asyncio.ensure_future(_copy(reader, to_server, door.bandwidth)),
                asyncio.ensure_future(_copy(from_server, writer, door.bandwidth)),
            ]
            try:
                await asyncio.gather(*ways)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.wait(ways)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, bandwidth: Bandwidth) -> None:
    while chunk := await source.read(CHUNK_BYTES):
        await bandwidth.take(len(chunk))
        sink.write(chunk)
        await sink.drain()
    sink.write_eof()


def _keep_alive(writer: asyncio.StreamWriter) -> None:
    """Notice a peer that vanished: watches are silent for minutes."""
    if (sock := writer.get_extra_info("socket")) is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
