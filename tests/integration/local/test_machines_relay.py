"""Relays between network namespaces: bytes are forwarded in both directions."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import real_machine
from eventually import eventually
from hansa.local.machines.addresses import CONTROL_PLANE, Networks
from hansa.local.machines.command import Failed, run
from hansa.local.machines.host_network import NAMESPACES, HostNetwork
from hansa.programs import ports, relay
from hansa.programs.relay import NetnsAddress
from real_machine import host, listening

A = Networks(1)
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def capable(tmp_path: Path) -> None:
    real_machine.tools(tmp_path)


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[HostNetwork]:
    fabric = HostNetwork(tmp_path)
    yield fabric
    await fabric.remove("a")


@pytest.fixture
async def passage(fabric: HostNetwork) -> AsyncIterator[tuple[NetnsAddress, socket.socket]]:
    """A door from loopback to a server in a host's namespace, and that server."""
    await fabric.ensure("a", 1, is_joined=False)
    outer = NetnsAddress("", ports.LOOPBACK, ports.choose(1, taken=(), seed="relay")[0])
    with listening(host(fabric, "a", A)) as server:
        async with opened(outer, host(fabric, "a", A)):
            yield outer, server


@contextlib.asynccontextmanager
async def opened(listen: NetnsAddress, dial: NetnsAddress) -> AsyncIterator[None]:
    child = await asyncio.create_subprocess_exec(*relay.command(listen, dial))
    try:
        await eventually(lambda: is_listening(listen))
        yield
    finally:
        child.kill()
        await child.wait()


async def is_listening(place: NetnsAddress) -> bool:
    netns = NAMESPACES / place.netns if place.netns else Path("/proc/self/ns/net")
    return bool(await run("nsenter", f"--net={netns}", "ss", "-Hltn", f"sport = :{place.port}"))


async def connected(outer: NetnsAddress, server: socket.socket) -> tuple[Ends, Ends]:
    """Both ends of a connection through a door."""
    client = await asyncio.open_connection(outer.address, outer.port, limit=1 << 24)
    accepted, _ = await asyncio.get_running_loop().sock_accept(server)
    return client, await asyncio.open_connection(sock=accepted, limit=1 << 24)


async def test_a_relay_forwards_bytes_both_ways_and_closing_one_way_leaves_the_other_open(
    passage: tuple[NetnsAddress, socket.socket],
) -> None:
    (client_in, client_out), (server_in, server_out) = await connected(*passage)
    question = os.urandom(5_000_000)
    client_out.write(question)
    client_out.write_eof()
    assert await server_in.read(-1) == question
    server_out.write(b"answer")
    server_out.close()
    assert await client_in.read(-1) == b"answer"
    client_out.close()


async def test_a_relay_serves_many_connections_at_once(passage: tuple[NetnsAddress, socket.socket]) -> None:
    pairs = [await connected(*passage) for _ in range(300)]
    for number, ((_, client_out), _) in enumerate(pairs):
        client_out.write(f"{number}\n".encode())
    assert [await server_in.readline() for _, (server_in, _) in pairs] == [f"{n}\n".encode() for n in range(300)]
    for (_, client_out), (_, server_out) in pairs:
        client_out.close()
        server_out.close()


async def test_a_relay_applies_back_pressure_to_a_sender_that_is_faster_than_the_reader(
    passage: tuple[NetnsAddress, socket.socket],
) -> None:
    outer, server = passage
    loop = asyncio.get_running_loop()
    with outer.open() as client:
        await loop.sock_connect(client, (outer.address, outer.port))
        accepted, _ = await loop.sock_accept(server)
        with accepted:
            sent = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while sent < 1 << 30:
                        await loop.sock_sendall(client, bytes(1 << 20))
                        sent += 1 << 20
            assert sent < 64 << 20


async def test_a_relay_closes_the_connection_when_its_target_does_not_listen(
    passage: tuple[NetnsAddress, socket.socket],
) -> None:
    outer, server = passage
    server.close()
    reader, writer = await asyncio.open_connection(outer.address, outer.port)
    async with asyncio.timeout(60):
        assert await reader.read(1) == b""
    writer.close()


async def test_a_relay_works_in_the_other_direction_too(fabric: HostNetwork) -> None:
    await fabric.ensure("a", 1, is_joined=False)
    inner = host(fabric, "a", A)
    outside = NetnsAddress("", ports.LOOPBACK, ports.choose(1, taken=(), seed="webhook")[0])
    with listening(outside) as server:
        async with opened(inner, outside):
            loop = asyncio.get_running_loop()
            with NetnsAddress(fabric.host("a", CONTROL_PLANE), "", 0).open() as client:
                await loop.sock_connect(client, (inner.address, inner.port))
                accepted, _ = await loop.sock_accept(server)
                with accepted:
                    await loop.sock_sendall(client, b"review")
                    assert await loop.sock_recv(accepted, 100) == b"review"


async def test_a_relay_that_cannot_listen_fails_with_the_reason() -> None:
    with socket.create_server((ports.LOOPBACK, 0)) as taken:
        place = NetnsAddress("", *taken.getsockname())
        for listen, why in (
            (place, "Address already in use"),
            (NetnsAddress("nowhere", "", 1), "No such file or directory"),
        ):
            with pytest.raises(Failed, match=f"failed: cannot listen on {listen}: {why}$"):
                await run(*relay.command(listen, place))
