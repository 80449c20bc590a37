"""Downloads from a real HTTP server: verification, failures, and timeouts."""

import asyncio
import hashlib
import io
import os
import resource
import ssl
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

import binaries_lab
from hansa.kube import certificates
from hansa.programs import binaries, execution

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
SUM = hashlib.sha256(binaries_lab.PROGRAM).hexdigest()


class Publisher:
    """A server that publishes files and remembers what it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.base = ""

    def publish(self, name: str, content: bytes | str) -> None:
        body = content.encode() if isinstance(content, str) else content

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=body)

        self.answers[f"/{name}"] = answer

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        if request.method == "HEAD":
            return web.Response()
        answer = self.answers.get(request.path)
        return await answer(request) if answer else web.Response(status=404)


@pytest.fixture(autouse=True)
async def go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on PATH, also where only the users' cache has it: what is not downloaded is built."""
    monkeypatch.setenv("PATH", str((await binaries_lab.go()).parent), prepend=os.pathsep)


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    publisher = Publisher()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", publisher.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    publisher.base = "http://{}:{}".format(*runner.addresses[0])
    yield publisher
    await runner.cleanup()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """Modules that cannot be built, so that a failed download is reported."""
    return binaries_lab.write_module(tmp_path / "modules", "package main\n\nfunc main() { broken }\n")


async def refusal(
    publisher: Publisher, root: Path, modules: Path, timeouts: binaries.Timeouts = binaries_lab.TIMEOUTS
) -> str:
    """Why the download was not used, as the person reads it."""
    sources = binaries_lab.sources(root, modules, binaries_lab.released(publisher.base), timeouts=timeouts)
    with pytest.raises(binaries.Unavailable) as failed:
        await binaries.ensure(["tiny"], sources=sources)
    assert [path.name for path in root.glob("*/*")] == ["lock"]
    host = publisher.base.removeprefix("http://")
    _, _, reason = str(failed.value).partition(f"; download from {host} failed (")
    return reason.partition("); build failed: ")[0]


async def test_a_release_is_downloaded_once_and_can_be_run(publisher: Publisher, root: Path, modules: Path) -> None:
    publisher.publish("tiny", binaries_lab.PROGRAM)
    publisher.publish("tiny.sha256", SUM)
    sources = binaries_lab.sources(root, modules, binaries_lab.released(publisher.base))
    first = (await binaries.provide(["tiny"], sources=sources))[0]
    again = (await binaries.provide(["tiny"], sources=sources))[0]
    assert first.source is binaries.Source.DOWNLOAD
    assert again == binaries.BinaryLocation(first.binary, first.path, binaries.Source.CACHE)
    assert publisher.asked == ["HEAD /tiny.sha256", "GET /tiny.sha256", "GET /tiny"]
    assert (await execution.run([str(first.path)], deadline=60)).output == "tiny v1.2.3\n"


async def test_a_program_is_taken_out_of_an_archive(publisher: Publisher, root: Path, modules: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("tiny-v1.2.3/bin/tiny")
        member.size = len(binaries_lab.PROGRAM)
        tar.addfile(member, io.BytesIO(binaries_lab.PROGRAM))
    publisher.publish("tiny.tar.gz", buffer.getvalue())
    publisher.publish("SUMS", f"{'0' * 64}  other\n{hashlib.sha256(buffer.getvalue()).hexdigest()}  tiny.tar.gz\n")
    base = publisher.base
    urls = {"url": f"{base}/tiny.tar.gz", "checksums": f"{base}/SUMS", "member": "tiny-{version}/bin/tiny"}
    sources = binaries_lab.sources(root, modules, binaries_lab.released(base, **urls))
    path = (await binaries.ensure(["tiny"], sources=sources))["tiny"]
    assert path.read_bytes() == binaries_lab.PROGRAM
    assert binaries_lab.half_done(root) == []


async def test_a_wrong_checksum_is_refused(publisher: Publisher, root: Path, modules: Path) -> None:
    publisher.publish("tiny", b"something else")
    publisher.publish("tiny.sha256", SUM)
    found = hashlib.sha256(b"something else").hexdigest()
    assert await refusal(publisher, root, modules) == f"its SHA-256 is {found}, published is {SUM}"


async def test_a_release_without_a_checksum_is_refused(publisher: Publisher, root: Path, modules: Path) -> None:
    publisher.publish("tiny", binaries_lab.PROGRAM)
    assert await refusal(publisher, root, modules) == f"404 Not Found for {publisher.base}/tiny.sha256"


async def test_a_stalled_transfer_is_aborted(publisher: Publisher, root: Path, modules: Path) -> None:
    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        await asyncio.Event().wait()
        return response

    publisher.answers["/tiny"] = half
    publisher.publish("tiny.sha256", SUM)
    timeouts = binaries.Timeouts(connect=30, stall=2)
    assert await refusal(publisher, root, modules, timeouts) == "no data for 2 s"


async def test_a_transfer_that_is_cut_off_is_refused(publisher: Publisher, root: Path, modules: Path) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    publisher.answers["/tiny"] = cut
    publisher.publish("tiny.sha256", SUM)
    assert "payload is not completed" in await refusal(publisher, root, modules)


async def test_what_cannot_be_downloaded_is_built(publisher: Publisher, root: Path, tmp_path: Path) -> None:
    modules = binaries_lab.write_module(tmp_path / "good")
    sources = binaries_lab.sources(root, modules, binaries_lab.released(publisher.base))
    assert (await binaries.provide(["tiny"], sources=sources))[0].source is binaries.Source.BUILD


async def test_a_host_that_does_not_answer_is_asked_once_for_all_binaries(root: Path, tmp_path: Path) -> None:
    connections = []

    async def silence(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)

    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    release = binaries_lab.released(f"http://{host}:{port}").release
    entries = [binaries_lab.tiny(name, release=release) for name in ("one", "two", "three")]
    modules, timeouts = binaries_lab.write_module(tmp_path / "good"), binaries.Timeouts(connect=0.5)
    sources = binaries_lab.sources(root, modules, *entries, timeouts=timeouts)
    try:
        held = await binaries.provide(["one", "two", "three"], sources=sources)
    finally:
        for writer in connections:
            writer.close()
        server.close()
        await server.wait_closed()
    assert {holding.source for holding in held} == {binaries.Source.BUILD}
    assert len(connections) == 1


async def test_a_host_with_a_strange_certificate_is_not_believed(root: Path, modules: Path, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    subject = certificates.Subject("somebody", names=("127.0.0.1",))
    pair = certificates.issue(certificates.authority("unknown", now), subject, now)
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pair.pem")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    host, port = server.sockets[0].getsockname()
    sources = binaries_lab.sources(root, modules, binaries_lab.released(f"https://{host}:{port}"))
    async with server:
        with pytest.raises(binaries.Unavailable, match=r"failed \(untrusted certificate\)"):
            await binaries.ensure(["tiny"], sources=sources)


async def test_a_release_whose_checksums_cannot_be_reached_is_refused(
    publisher: Publisher, root: Path, modules: Path
) -> None:
    publisher.publish("tiny", binaries_lab.PROGRAM)
    elsewhere = binaries_lab.released(publisher.base, checksums=binaries_lab.NOWHERE.checksums)
    with pytest.raises(binaries.Unavailable, match=r"download from 127\.0\.0\.1:9 failed \(connection refused\)"):
        await binaries.ensure(["tiny"], sources=binaries_lab.sources(root, modules, elsewhere))
    assert "GET /tiny" not in publisher.asked


async def test_hosts_that_cannot_be_found_cost_no_more_than_the_patience(root: Path, modules: Path) -> None:
    names = ("a", "b", "c")
    releases = [binaries_lab.released(f"http://{name}.invalid").release for name in names]
    entries = [binaries_lab.tiny(name, release=release) for name, release in zip(names, releases, strict=True)]
    sources = binaries_lab.sources(root, modules, *entries, timeouts=binaries.Timeouts(connect=20))
    began = time.monotonic()
    with pytest.raises(binaries.Unavailable, match=r"download from a\.invalid failed"):
        await binaries.ensure(names, sources=sources)
    assert time.monotonic() - began < 20 * len(names), "all hosts are asked at the same time"


async def test_a_full_disk_ends_the_attempt_with_one_sentence(publisher: Publisher, root: Path, modules: Path) -> None:
    publisher.publish("tiny", bytes(1 << 20))
    publisher.publish("tiny.sha256", hashlib.sha256(bytes(1 << 20)).hexdigest())
    sources = binaries_lab.sources(root, modules, binaries_lab.released(publisher.base))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))
    try:
        with pytest.raises(binaries.Unavailable) as failed:
            await binaries.ensure(["tiny"], sources=sources)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    folder = sources.entry(binaries_lab.tiny()).folder
    assert str(failed.value) == f"the disk of {folder} is full; free some space and try again"
    assert [path.name for path in root.glob("*/*")] == ["lock"]


async def test_a_cancelled_download_leaves_nothing(publisher: Publisher, root: Path, modules: Path) -> None:
    begun = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1000))
            begun.set()

    publisher.answers["/tiny"] = endless
    publisher.publish("tiny.sha256", SUM)
    sources = binaries_lab.sources(root, modules, binaries_lab.released(publisher.base))
    task = asyncio.create_task(binaries.ensure(["tiny"], sources=sources))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [path.name for path in root.glob("*/*")] == ["lock"]
