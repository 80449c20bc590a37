"""The relay from pods to the API servers of tenants, on loopback, with servers that return what they get."""

import asyncio
import contextlib

import pytest

from eventually import eventually
from hansa.engine.registry import ClusterRegistry
from hansa.kube.objects import Object
from hansa.programs import ports
from hansa.runtime import clock, metrics
from hansa.tenancy.syncing import api_relay
from hansa.tenancy.syncing.api_relay import ApiRelay, CannotListen, RelaySettings
from hansa.tenancy.syncing.members import Tenancy
from hansa.tenancy.syncing.owners import Owner

HOST = "127.0.0.1"


@contextlib.asynccontextmanager
async def echo(prefix=b""):
    """A server that returns what it gets, after a prefix."""

    async def answer(reader, writer):
        writer.write(prefix)
        while chunk := await reader.read(1000):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


def tenancy(key, port):
    vc = Object.of({"kind": "VirtualCluster", "metadata": {"name": key}})
    return Tenancy(vc, Owner(key, "default", key, "u", "m"), f"https://{HOST}:{port}")


def a_relay(**settings):
    return ApiRelay(RelaySettings(HOST, **settings), clock=clock.SystemClock(), metrics=metrics.Registry())


async def said(endpoint, text=b""):
    """What a client gets that sends a text and ends."""
    reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port)
    with contextlib.closing(writer):
        writer.write(text)
        writer.write_eof()
        async with asyncio.timeout(20):
            return await reader.read()


@contextlib.asynccontextmanager
async def running(relay):
    """The relay, as long as the block lasts; it forgets tenants that are in no registry when it starts."""
    registry = ClusterRegistry()
    task = asyncio.ensure_future(relay.run(registry))
    await asyncio.sleep(0)
    try:
        yield registry
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_each_tenant_has_a_port_that_leads_to_its_server_in_both_directions():
    relay = a_relay()
    async with running(relay), echo(b"a:") as first, echo(b"b:") as second:
        a, b = [await relay.endpoint(tenancy(key, port)) for key, port in (("a", first), ("b", second))]
        large = b"x" * 3_000_000
        assert (await said(a, large), await said(b, b"moin")) == (b"a:" + large, b"b:moin")
        assert await relay.endpoint(tenancy("a", second)) == a
        assert await said(a) == b"b:"


async def test_a_tenant_keeps_its_port_over_restarts():
    found = []
    for _ in range(2):
        relay = a_relay()
        async with running(relay), echo() as port:
            found.append(await relay.endpoint(tenancy("a", port)))
    assert found[0] == found[1]


async def test_a_server_that_does_not_answer_ends_the_connection():
    [closed] = ports.choose(1, taken=(), seed="closed")
    relay = a_relay()
    async with running(relay):
        assert await said(await relay.endpoint(tenancy("a", closed)), b"x") == b""


async def test_connections_of_a_tenant_beyond_its_limit_are_closed(monkeypatch):
    monkeypatch.setattr(api_relay, "MOST_CONNECTIONS", 1)
    relay = a_relay()
    async with running(relay), echo(b"moin") as port:
        endpoint = await relay.endpoint(tenancy("a", port))
        reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port)
        assert await reader.readexactly(4) == b"moin"
        with contextlib.suppress(ConnectionResetError):
            assert await said(endpoint) == b""
        writer.close()

        async def is_free():
            with contextlib.suppress(ConnectionResetError):
                return await said(endpoint) == b"moin"

        await eventually(is_free)


async def test_the_connections_and_the_port_of_a_tenant_that_leaves_are_closed():
    relay = a_relay()
    async with running(relay) as registry, echo(b"moin") as port:
        endpoint = await relay.endpoint(tenancy("a", port))
        reader, writer = await asyncio.open_connection(endpoint.address, endpoint.port)
        assert await reader.readexactly(4) == b"moin"
        registry.follow("other")
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()

        async def refuses():
            with contextlib.suppress(ConnectionRefusedError):
                await said(endpoint)
                return False
            return True

        await eventually(refuses)


async def test_a_range_without_a_free_port_is_reported_with_the_flag():
    async with echo() as port:
        relay = a_relay(ports=range(port, port + 1))
        with pytest.raises(CannotListen, match=f"--api-relay-address: cannot listen at {HOST}, port {port} to {port}"):
            await relay.endpoint(tenancy("a", port))
