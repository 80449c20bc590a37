"""A hostile API server: each of its answers fails one request with a sentence, in bounded memory and time."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hansa.kube import discovery, errors, watching
from hansa.kube.client import Client
from hansa.kube.credentials import Access, Credentials
from hansa.kube.credentials.login import Login
from hansa.kube.http.connection import ProxyRefused, connect
from hansa.kube.http.limits import MIB, Limits, TooLarge
from hansa.kube.resources import CONFIG_MAPS
from hansa.kube.watching import Added, Interrupted, Patience, Restarted
from hansa.runtime.backoff import Backoff
from scripted_server import Script, request_head, serving

DEADLINE = 10.0  # seconds; a limit is expected to end a request long before
LOW = Limits(answer=MIB, refusal=MIB // 8, line=MIB, list_objects=1000, list_bytes=4 * MIB, list_pages=50)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAMED = b"HTTP/1.1 200 OK\r\n\r\n"  # ends with its connection
HASTY = Patience(idle=5.0, backoff=Backoff(first=0.05, most=0.1))
DEEP = 100_000  # levels of JSON


@contextlib.asynccontextmanager
async def against(script: Script, limits: Limits = LOW) -> AsyncIterator[Client]:
    """A client of such a server."""
    async with serving(script) as port:
        login = Login(server=f"http://127.0.0.1:{port}", server_origin="field server", origin="test")
        async with Client(Credentials(lambda: login), user_agent="test", deadline=DEADLINE, limits=limits) as client:
            yield client


def answering(*parts: bytes, is_endless: bool = False) -> Script:
    """Answers each request with these bytes, the last of them again and again if it is endless."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request_head(reader):
            for part in parts:
                writer.write(part)
                await writer.drain()
            while is_endless:
                writer.write(parts[-1])
                await writer.drain()

    return script


def answer(body: bytes, status: bytes = b"200 OK", *headers: bytes) -> bytes:
    """A whole answer."""
    lines = (b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def stream_all(client: Client) -> None:
    """Read a stream to its end."""
    with contextlib.closing(await client.open("/x")) as stream:
        while await stream.read():
            pass


def sockets() -> int:
    """The sockets of this process."""

    def names() -> Iterator[str]:
        for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError):
                yield os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115

    return sum(name.startswith("socket:") for name in names())


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
        b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"1" * 5000 + b"\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n0123456789",
        CHUNKED + b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
        CHUNKED + b"0x1f\r\n" + b"x" * 31 + b"\r\n0\r\n\r\n",
        CHUNKED + b"f" * 5000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
    ],
    ids=lambda wire: repr(wire[9:48]),
)
async def test_invalid_http_fails_the_request_and_closes_its_socket(wire: bytes) -> None:
    async with against(answering(wire)) as client:
        before = sockets()
        for _ in range(3):
            with pytest.raises(errors.Unreachable, match=r"cannot GET /x: the answer of \S+ is not valid HTTP: "):
                await client.request("GET", "/x")
            with pytest.raises(errors.Unreachable, match="not valid HTTP"):
                await stream_all(client)
        async with asyncio.timeout(60):
            while sockets() > before:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((b"HTTP/1.1 100 Continue\r\n\r\n",), "more than 8 answers with a 1xx status"),
        ((b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 100), "the head has more than 65536 bytes"),
        ((b"HTTP/1.1 200 OK\r\nA: ", b"x" * 1000), "the head has more than 65536 bytes"),
        ((CHUNKED + b"0\r\n", b"A: b\r\n" * 100), "the trailers have more than 16384 bytes"),
        ((CHUNKED + b"3;", b"x" * 1000), "the line of a chunk has more than 16384 bytes"),
    ],
    ids=["1xx", "headers", "a header", "trailers", "a chunk extension"],
)
async def test_heads_without_end_are_limited(parts: tuple[bytes, ...], sentence: str) -> None:
    async with against(answering(*parts, is_endless=True)) as client:
        with pytest.raises(errors.Unreachable, match=sentence):
            await client.request("GET", "/x")


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n",),
        (STREAMED, b"x" * 10_000),
        (CHUNKED, b"2\r\nxx\r\n" * 1000),
    ],
    ids=["announced", "until the end", "in small chunks"],
)
async def test_bodies_are_limited(parts: tuple[bytes, ...]) -> None:
    low = replace(LOW, answer=MIB // 8)
    async with against(answering(*parts, is_endless=len(parts) > 1), low) as client:
        with pytest.raises(TooLarge, match="cannot GET /x: the answer is larger than its limit"):
            await client.request("GET", "/x")


async def test_bodies_of_errors_are_limited_more() -> None:
    async with against(answering(answer(b"x" * (MIB // 4), b"403 Forbidden"))) as client:
        with pytest.raises(TooLarge):
            await client.request("GET", "/x")
        with pytest.raises(TooLarge):
            await client.open("/x")


@pytest.mark.parametrize(
    ("head", "connections"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive, close", 3),
        (b"HTTP/1.0 200 OK", 3),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive", 1),
    ],
    ids=["close in a list", "HTTP/1.0", "kept"],
)
async def test_only_a_connection_that_the_server_keeps_is_used_again(head: bytes, connections: int) -> None:
    opened = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while await request_head(reader):
            writer.write(head + b"\r\nContent-Length: 2\r\n\r\nok")

    async with against(script) as client:
        for _ in range(3):
            assert (await client.request("POST", "/x")).body == b"ok"
    assert opened == connections


async def test_surplus_bytes_never_answer_the_next_request() -> None:
    async with against(answering(answer(b"ok") + answer(b"forged"))) as client:
        for _ in range(3):
            assert (await client.request("GET", "/x")).body == b"ok"


@pytest.mark.parametrize(
    "parts",
    [(b"HTTP/1.1 200 OK\r\n\r\n" + answer(b"forged"),), (b"HTTP/1.1 100 Continue\r\n\r\n",)],
    ids=["bytes", "1xx"],
)
async def test_a_proxy_cannot_answer_for_the_server(parts: tuple[bytes, ...]) -> None:
    async with serving(answering(*parts, is_endless=parts[0].startswith(b"HTTP/1.1 1"))) as port:
        login = Login(server="http://a.example", server_origin="field server", origin="test")
        with pytest.raises(ProxyRefused):
            await connect(Access(login.server, None, login, proxy=f"http://127.0.0.1:{port}"))


async def test_an_upgrade_that_is_not_granted_is_an_error() -> None:
    headers = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")]
    async with against(answering(answer(b"ok"))) as client:
        with pytest.raises(errors.Unreachable, match="cannot POST /x: the server answered 200, not an upgrade"):
            await client.tunnel("POST", "/x", headers=headers)


@pytest.mark.parametrize("text", [b"\xb2", b"9" * 5000, b"999999999"])
async def test_a_wait_that_the_server_wants_is_limited(text: bytes) -> None:
    body = json.dumps({"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 10**400}}).encode()
    async with against(answering(answer(body, b"429 Too Many Requests", b"Retry-After: " + text))) as client:
        with pytest.raises(errors.Throttled) as caught:
            await client.request("GET", "/x")
    assert 1 <= caught.value.retry_after <= 60


@pytest.mark.parametrize(
    "body",
    [b"[" * DEEP, b'{"metadata":{"name":"\xff"}}', b'{"spec":{"a":"\xff"}}', b'{"spec":' + b"[" * DEEP, b"<html>"],
)
async def test_an_answer_that_cannot_be_decoded_is_an_error(body: bytes) -> None:
    async with against(answering(answer(body))) as client:
        with pytest.raises(
            errors.Unreachable, match="cannot read configmaps a/b: the answer is not that of an API server"
        ):
            await client.get(CONFIG_MAPS, "b", namespace="a")
        with pytest.raises(errors.Unreachable, match="cannot list configmaps: the answer is not that of an API server"):
            await client.list(CONFIG_MAPS)
        with pytest.raises(errors.Unreachable, match="cannot read the server's version"):
            await client.version()
    async with against(answering(answer(body, b"422 Unprocessable Entity"))) as client:
        with pytest.raises(errors.Invalid):
            await client.get(CONFIG_MAPS, "b", namespace="a")


@pytest.mark.parametrize("body", [b"[" * DEEP, b'{"items":' + b"[" * DEEP, b"<html>", b'{"items":{}}'])
async def test_a_discovery_that_cannot_be_decoded_is_an_error(body: bytes) -> None:
    async with against(answering(answer(body))) as client:
        with pytest.raises(errors.Unreachable, match="cannot discover resources: the answer cannot be decoded"):
            await discovery.discover(client)


def config_map(size: int = 10) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "a", "resourceVersion": "1"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "y" * size}}


def listing(count: int, size: int = 10, *, tokens: Iterator[str]) -> Script:
    """A list of pages that have so many objects, or as many as the client wants."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request_head(reader):
            writer.write(_page(head, count, size, next(tokens)))

    return script


def _page(head: bytes, count: int, size: int, token: str) -> bytes:
    query = parse_qs(urlsplit(head.split()[1]).query)
    items = [config_map(size)] * min(count, int(query.get(b"limit", [b"500"])[0]))
    metadata = {"resourceVersion": "1", "continue": token}
    return answer(
        json.dumps({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()
    )


def new_tokens() -> Iterator[str]:
    yield from map(str, range(10**9))


@pytest.mark.parametrize(
    ("count", "size", "sentence"),
    [(100, 10, "more than 1000 objects"), (10, 50_000, "more than 4 MiB"), (0, 0, "more than 50 pages")],
)
async def test_a_list_is_limited(count: int, size: int, sentence: str) -> None:
    async with against(listing(count, size, tokens=new_tokens())) as client:
        with pytest.raises(TooLarge, match=f"cannot list configmaps: the list has {sentence}"):
            async for _ in client.pages(CONFIG_MAPS):
                pass


async def test_a_continue_token_that_is_repeated_ends_the_list() -> None:
    async with against(listing(1, tokens=iter("abcabc"))) as client:
        with pytest.raises(errors.Unreachable, match="cannot list configmaps: the server repeats a continue token"):
            async for _ in client.pages(CONFIG_MAPS):
                pass


async def test_a_page_that_is_too_large_is_read_in_smaller_ones() -> None:
    async with against(listing(500, 10_000, tokens=iter(["", "", "", "a", ""]))) as client:
        assert [len(page.items) async for page in client.pages(CONFIG_MAPS)] == [62, 62]


def event(kind: str = "ADDED", size: int = 10) -> bytes:
    return json.dumps({"type": kind, "object": config_map(size)}).encode() + b"\n"


DEEP_EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"x"},"spec":' + b"[" * DEEP + b"]" * DEEP + b"}}\n"
WAIT_EVENT = b'{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":1' + b"0" * 400 + b"}}}\n"


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((b"x" * 10_000,), "a line is longer than 1 MiB"),
        ((event(),), "more than 1000 objects"),
        ((event(size=100_000),), "more than 4 MiB"),
        ((event("SURPRISE"),), "an event of an unknown type"),
        ((DEEP_EVENT,), "an event cannot be decoded .JSON is nested too deeply"),
        ((event().replace(b"yyy", b"y\xffy"),), "an event cannot be decoded .text is not UTF-8"),
        ((event().replace(b'"resourceVersion": "1"', b'"resourceVersion": ""'),), "without a resourceVersion"),
        ((WAIT_EVENT,), "cannot watch configmaps"),
    ],
    ids=["a line", "objects", "bytes", "type", "depth", "text", "version", "wait"],
)
async def test_a_watch_is_interrupted_and_goes_on(parts: tuple[bytes, ...], sentence: str) -> None:
    script = answering(STREAMED, *parts, is_endless=True)
    async with against(script) as client:
        changes = watching.watch(client, CONFIG_MAPS, patience=HASTY)
        async with contextlib.aclosing(changes), asyncio.timeout(60):
            seen = []
            async for change in changes:
                assert isinstance(change, Restarted | Added | Interrupted)
                seen.append(type(change))
                if isinstance(change, Interrupted):
                    assert sentence in str(change.error).replace("(", ".")
                    assert change.retry_in <= 60
                    if change.retry_in > 1:
                        break  # as the server asks for
                elif Interrupted in seen:
                    break
            assert seen[-1] is Restarted or parts == (WAIT_EVENT,)


async def test_a_bookmark_does_not_end_a_list_unless_it_says_so() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request_head(reader):
            is_list = b"watch=1" not in head and b"watch=true" not in head
            writer.write(_page(head, 2, 10, "") if is_list else STREAMED + event() + event("BOOKMARK"))
            if not is_list:
                return

    async with against(script) as client:
        changes = watching.watch(client, CONFIG_MAPS, patience=HASTY)
        seen = []
        async with contextlib.aclosing(changes), asyncio.timeout(60):
            async for change in changes:
                seen.append(type(change))
                if isinstance(change, watching.Synced):
                    break
    assert seen == [Restarted, Added, Restarted, Added, Added, watching.Synced], "the list came in pages"


async def test_a_watch_of_an_older_server_has_a_limited_list() -> None:
    tokens = new_tokens()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request_head(reader):
            writer.write(
                answer(b"{}", b"400 Bad Request") if b"watch=1" in head else _page(head, 100, 10, next(tokens))
            )

    async with against(script) as client:
        changes = watching.watch(client, CONFIG_MAPS, patience=HASTY)
        async with contextlib.aclosing(changes), asyncio.timeout(60):
            found = [change async for change in _until_interrupted(changes)]
    assert len([change for change in found if isinstance(change, Added)]) == 1000
    assert "more than 1000 objects" in str(found[-1].error)  # type: ignore[union-attr]


async def _until_interrupted(changes: AsyncIterator[watching.Change]) -> AsyncIterator[watching.Change]:
    async for change in changes:
        yield change
        if isinstance(change, Interrupted):
            return
