"""The HTTPS server of the kubelet API on loopback: certificates that change under load, hostile callers, limits."""

import asyncio
import contextlib
import datetime
import random
import socket
import ssl

import pytest

from eventually import eventually
from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.kubelet import connecting, exchange, server
from hansa.kubelet.certificates import CertificateFiles, Serving
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.server import Server
from hansa.runtime.clock import SystemClock

SPEED = 400  # of the clock, so that certificates are read again several times a second


class FastClock(SystemClock):
    def now(self):
        return super().now() * SPEED

    async def sleep(self, seconds):
        await super().sleep(seconds / SPEED)


class Lab:
    """A running server. `/stream` sends a piece whenever `tick` is called, `/large` has a large body."""

    def __init__(self, folder):
        self.files = CertificateFiles(folder / "tls.crt", folder / "tls.key")
        self.authority = certificates.authority("test", datetime.datetime.now(datetime.UTC))
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.distrusted = 0
        self.ticks = asyncio.Condition()
        self.large = []  # the tasks of calls of /large

    def rotate(self):
        """Write another certificate, key first; its bytes."""
        pair = certificates.issue(
            self.authority, Subject("node", names=("127.0.0.1",)), datetime.datetime.now(datetime.UTC)
        )
        self.files.key.write_bytes(pair.key)
        self.files.certificate.write_bytes(pair.certificate)
        return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())

    async def tick(self):
        async with self.ticks:
            self.ticks.notify_all()

    async def handle(self, exchange):
        if exchange.target == "/large":
            self.large.append(asyncio.current_task())
            await exchange.answer(200, bytes(2**25))
            return
        if exchange.target != "/stream":
            raise Refusal(404, "404 page not found")
        await exchange.start()
        while True:
            async with self.ticks:
                await self.ticks.wait()
            await exchange.send(b"tick")

    def count(self):
        self.distrusted += 1

    async def connect(self):
        tls = ssl.create_default_context(cadata=self.authority.certificate.decode())
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)

    async def call(self, data=b"GET / HTTP/1.1\r\nHost: node\r\n\r\n"):
        """The answer to these bytes, and the server's certificate."""
        reader, writer = await self.connect()
        try:
            writer.write(data)
            return await reader.read(), writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()


@pytest.fixture
async def lab(client, tmp_path):
    made = Lab(tmp_path)
    made.rotate()
    serving = Serving(client, made.files, clock=FastClock())
    running = asyncio.create_task(Server("test", made.listening, serving, made.handle, distrusted=made.count).run())
    yield made
    running.cancel()
    await asyncio.wait([running])
    made.listening.close()


async def test_certificates_change_under_load_and_no_call_notices(lab):
    is_over = asyncio.Event()
    calls = 0

    async def load():
        nonlocal calls
        while not is_over.is_set():
            answer, _ = await lab.call()
            assert answer.startswith(b"HTTP/1.1 404 ")
            calls += 1

    async def is_presented(certificate):
        return (await lab.call())[1] == certificate

    reader, writer = await lab.connect()
    writer.write(b"GET /stream HTTP/1.1\r\nHost: node\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(load())
        for _ in range(4):
            certificate = lab.rotate()
            await eventually(lambda wanted=certificate: is_presented(wanted))
        is_over.set()
    assert calls > 20
    # A stream that began with the first certificate goes on.
    await lab.tick()
    assert await reader.readexactly(len(b"4\r\ntick\r\n")) == b"4\r\ntick\r\n"
    writer.close()


async def test_what_is_no_request_ends_its_connection_only(lab):
    chance = random.Random(3)
    for case in (
        b"",
        b"\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"GET /" + b"a" * 2**19,
        *(chance.randbytes(chance.randrange(1, 3000)) + b"\r\n\r\n" for _ in range(50)),
    ):
        with contextlib.suppress(ConnectionError):  # it was closed while we still sent
            answer, _ = await lab.call(case)
            assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")), case[:100]
    assert (await lab.call())[0].startswith(b"HTTP/1.1 404 ")


async def test_connections_without_a_handshake_or_a_request_are_closed_and_delay_nobody(lab, monkeypatch):
    monkeypatch.setattr(connecting, "HANDSHAKE_SECONDS", 1.0)
    monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
    silent = [await asyncio.open_connection("127.0.0.1", lab.port) for _ in range(50)]
    idle = [await lab.connect() for _ in range(5)]
    for _, writer in idle:
        writer.write(b"GET / HTTP/1.1\r\nHost:")
    assert (await lab.call())[0].startswith(b"HTTP/1.1 404 ")
    for reader, writer in (*silent, *idle):
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(60):
                assert await reader.read() == b""
        writer.close()
    assert lab.distrusted == 50


async def test_a_caller_that_does_not_read_its_answer_is_left(lab, monkeypatch):
    monkeypatch.setattr(exchange, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(exchange, "SLOWEST", 2**30)
    _, writer = await lab.connect()
    writer.transport.pause_reading()
    writer.write(b"GET /large HTTP/1.1\r\nHost: node\r\n\r\n")

    async def is_left():
        return lab.large and lab.large[0].done()

    await eventually(is_left, within=60)
    writer.transport.abort()


async def test_idle_connections_shut_nobody_out(lab, monkeypatch):
    monkeypatch.setattr(server, "MOST_HANDSHAKES", 5)
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 5)
    idle = [await asyncio.open_connection("127.0.0.1", lab.port) for _ in range(30)]
    assert (await lab.call())[0].startswith(b"HTTP/1.1 404 ")
    async with asyncio.timeout(60):
        assert await idle[0][0].read() == b""
    assert lab.distrusted >= 25
    for _, writer in idle:
        writer.close()


async def test_a_burst_of_connections_from_one_address_shuts_out_none_from_another(lab, monkeypatch):
    monkeypatch.setattr(server, "MOST_HANDSHAKES", 5)
    early = await asyncio.open_connection("127.0.0.1", lab.port, local_addr=("127.0.0.2", 0))
    burst = [await asyncio.open_connection("127.0.0.1", lab.port) for _ in range(30)]
    async with asyncio.timeout(60):
        assert await burst[0][0].read() == b""
    assert lab.distrusted >= 25
    assert not early[0].at_eof()
    for _, writer in (early, *burst):
        writer.close()


async def test_a_connection_counts_until_it_is_closed(lab, monkeypatch):
    """A caller that does not end TLS is cut."""
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(connecting, "CLOSE_SECONDS", 1.0)
    _, writer = await lab.connect()
    writer.transport.pause_reading()
    writer.write(b"GET / HTTP/1.1\r\nHost: node\r\n\r\n")
    await eventually(lambda: served(lab), within=60)
    writer.transport.abort()


async def served(lab):
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        return (await lab.call())[0].startswith(b"HTTP/1.1 404 ")


async def test_further_connections_than_the_limit_are_closed(lab, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    held = [await lab.connect() for _ in range(3)]

    async def refused():  # a connection counts when the server, too, has ended the handshake
        try:
            held.append(await lab.connect())
        except (ConnectionError, ssl.SSLError):
            return True

    await eventually(refused)
    for _, writer in held:
        writer.close()

    await eventually(lambda: served(lab))
