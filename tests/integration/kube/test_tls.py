"""TLS of a connection: large bodies both ways, and every way in which the other side can end it."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.kube.credentials import Access
from hansa.kube.credentials.login import Login
from hansa.kube.http.connection import Connection, connect
from scripted_server import request_head, serving

BODY = os.urandom(3_000_000)
ENOUGH = len(BODY)  # bytes that an answer may have
REQUEST = b"GET / HTTP/1.1\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"  # a body that ends with its connection

Leave = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Trust:
    """The contexts of a server and of its clients, and the file of the CA that both know."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    ca: Path

    async def dial(self, port: int, proxy: str | None = None) -> Connection:
        server = f"https://127.0.0.1:{port}"
        login = Login(server=server, server_origin="field server", origin="test")
        return await connect(Access(server, self.client, login, proxy=proxy))


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    now = datetime.now(UTC)
    ca = certificates.authority("test", now)
    pair = certificates.issue(ca, Subject("server", names=("127.0.0.1",)), now)
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    (tmp_path / "ca.pem").write_bytes(ca.certificate)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem")
    return Trust(server, ssl.create_default_context(cafile=tmp_path / "ca.pem"), tmp_path / "ca.pem")


async def say_goodbye(writer: asyncio.StreamWriter) -> None:
    writer.close()


async def leave_without_goodbye(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.sleep(0.1)
    with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as below:
        below.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("leave", [say_goodbye, leave_without_goodbye])
async def test_a_large_body_comes_whole_to_a_slow_reader(trust: Trust, leave: Leave) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(ENDLESS + BODY)
        await leave(writer)
        await reader.read()

    async with serving(script, tls=trust.server) as port, asyncio.timeout(60):
        connection = await trust.dial(port)
        await connection.exchange(REQUEST)
        come = b""
        while pieces := await connection.pieces():
            come += b"".join(pieces)
            await asyncio.sleep(0.01)
        assert come == BODY
        connection.close()


async def test_large_answers_follow_each_other(trust: Trust) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request_head(reader):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY))

    async with serving(script, tls=trust.server) as port, asyncio.timeout(60):
        connection = await trust.dial(port)
        for _ in range(3):
            await connection.exchange(REQUEST)
            await asyncio.sleep(0.1)  # so that more comes than it takes at a time
            assert await connection.body(ENOUGH) == BODY
        connection.close()


async def test_much_can_be_sent(trust: Trust) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(ENDLESS)
        await asyncio.sleep(0.1)  # while the client sends as much as it can
        assert await reader.readexactly(len(BODY)) == BODY
        writer.write(b"thanks")

    async with serving(script, tls=trust.server) as port, asyncio.timeout(60):
        connection = await trust.dial(port)
        await connection.exchange(REQUEST)
        await connection.write_raw(BODY)
        assert await connection.read_raw() == b"thanks"
        assert await connection.read_raw() == b""
        with pytest.raises(ConnectionResetError):
            await connection.write_raw(b"more")


async def test_tls_goes_through_a_proxy_that_speaks_tls_itself(trust: Trust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(trust.ca))  # what proxies are proved by

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(ENDLESS + BODY)

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server_port)
        await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer))

    async with (
        serving(answer, tls=trust.server) as server_port,
        serving(proxy, tls=trust.server) as proxy_port,
        asyncio.timeout(60),
    ):
        connection = await trust.dial(server_port, proxy=f"https://127.0.0.1:{proxy_port}")
        await connection.exchange(REQUEST)
        assert await connection.body(ENOUGH) == BODY
        connection.close()


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(2**16):
            writer.write(data)
    finally:
        writer.close()


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH\r\n"], ids=["nothing", "not TLS"])
async def test_a_server_that_does_not_shake_hands_is_told(trust: Trust, said: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)

    async with serving(script) as port:
        with pytest.raises(OSError, match="TLS|SSL"):
            await trust.dial(port)


async def test_what_is_no_tls_ends_a_connection(trust: Trust) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(ENDLESS + b"ok")
        await writer.drain()
        await asyncio.sleep(0.1)
        with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as below:
            below.send(b"nonsense" * 10)
        await reader.read()

    async with serving(script, tls=trust.server) as port, asyncio.timeout(60):
        connection = await trust.dial(port)
        await connection.exchange(REQUEST)
        assert await connection.read_raw() == b"ok"
        assert await connection.read_raw() == b""
        await connection.closed


async def test_whoever_is_interrupted_while_hands_are_shaken_hears_of_nothing_else(trust: Trust) -> None:
    """A signal's handler runs between any two steps: who waits may be cancelled before the handshake returns."""

    class Interrupted(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            dialling.cancel()

    trust.client.sslobject_class = Interrupted

    async def script(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    said: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: said.append(what))
    try:
        async with serving(script, tls=trust.server) as port, asyncio.timeout(60):
            dialling = asyncio.create_task(trust.dial(port))
            with pytest.raises(asyncio.CancelledError):
                await dialling
    finally:
        asyncio.get_running_loop().set_exception_handler(None)
    assert said == []
