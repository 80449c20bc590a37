"""Connections that end or stall: what a real API server does only when it is killed, or behind a proxy."""

import asyncio
import contextlib
import gc
import weakref
from collections.abc import AsyncIterator

import pytest

from hansa.kube import errors
from hansa.kube.credentials import Credentials, kubeconfig
from hansa.kube.credentials.login import Login
from hansa.kube.http.connection import Stale, connect
from hansa.kube.server import Server
from hansa.local import Cluster
from scripted_server import Script, request_head, serving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextlib.asynccontextmanager
async def against(script: Script) -> AsyncIterator[Server]:
    """A client of such a server."""
    async with serving(script) as port:
        login = Login(server=f"http://127.0.0.1:{port}/base", server_origin="field server", origin="test")
        async with Server(Credentials(lambda: login), user_agent="test", deadline=5) as server:
            yield server


async def read_to_the_end(server: Server) -> None:
    stream = await server.open("/x")
    while await stream.read():
        pass


async def test_a_connection_is_used_again() -> None:
    opened = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while head := await request_head(reader):
            assert head.startswith(b"GET /base/x HTTP/1.1\r\n")
            writer.write(OK)

    async with against(script) as server:
        for _ in range(3):
            assert (await server.request("GET", "/x")).body == b"ok"
    assert opened == 1


async def one_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers once, and closes when the next request comes."""
    await request_head(reader)
    writer.write(OK)
    await request_head(reader)


async def test_a_request_on_a_connection_that_just_ended_is_sent_again_only_if_it_may_be() -> None:
    async with against(one_answer) as server:
        for _ in range(3):
            assert (await server.request("GET", "/x")).body == b"ok"
        with pytest.raises(errors.Unreachable, match="broke"):
            await server.request("POST", "/x", body=b"{}")
        assert (await server.request("POST", "/x", body=b"{}")).body == b"ok"


async def test_a_connection_that_is_to_be_closed_is_not_used_again() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))

    async with against(script) as server:
        for _ in range(3):
            assert (await server.request("POST", "/x")).body == b"ok"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\nContent-",
    ],
    ids=["sized", "in a chunk", "between chunks", "in the head"],
)
async def test_an_incomplete_answer_is_an_error(answer: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(answer)
        await writer.drain()

    async with against(script) as server:
        with pytest.raises(errors.Unreachable, match="broke"):
            await server.request("GET", "/x")
        with pytest.raises(errors.Unreachable, match="broke"):
            await read_to_the_end(server)


async def test_a_stream_ends_where_the_server_ends_it() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")

    async with against(script) as server:
        stream = await server.open("/x")
        assert (await stream.read(), await stream.read()) == (b"ok", b"")


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" + b"x" * 500_000)
        await writer.drain()

    async with against(script) as server:
        assert len((await server.request("GET", "/x")).body) == 500_000


async def test_a_server_that_never_answers_is_given_up_at_the_deadline() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        await reader.read()

    async with against(script) as server:
        with pytest.raises(errors.Unreachable, match=r"cannot GET /x: http://.* gave no answer in 0\.1 s"):
            await server.request("GET", "/x", deadline=0.1)


async def test_a_login_page_is_no_answer_of_an_api_server() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request_head(reader)
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")

    async with against(script) as server:
        with pytest.raises(errors.Invalid, match="302"):
            await server.request("GET", "/x")


async def test_answers_larger_than_what_is_taken_at_a_time_follow_each_other() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        long = b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 50_000 + b"\r\nContent-Length: 1000000\r\n\r\n"
        while await request_head(reader):
            writer.write(long + b"y" * 1_000_000)

    async with against(script) as server:
        for _ in range(3):
            answer = await server.request("GET", "/x")
            assert (len(answer.headers["X-Long"]), answer.body) == (50_000, b"y" * 1_000_000)


async def test_a_connection_that_ended_is_gone_with_its_buffers(cluster: Cluster) -> None:
    access = await kubeconfig.from_files(cluster.kubeconfig).access()
    connection = await connect(access)
    await connection.exchange(b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n")
    assert await connection.body(10) == b"ok"
    there = weakref.ref(connection)
    gc.disable()
    try:
        connection.close()
        await connection.closed
        connection.close()
        assert not connection.is_reusable
        with pytest.raises(Stale):
            await connection.exchange(b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n")
        del connection
        await asyncio.sleep(0.1)
        assert there() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("latency", "least", "most"), [(0.001, 1, 4), (0.2, 8, 20)], ids=["fast", "slow"])
async def test_more_connections_are_opened_only_where_requests_wait(latency: float, least: int, most: int) -> None:
    opened = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened
        opened += 1
        while await request_head(reader):
            await asyncio.sleep(latency)
            writer.write(OK)

    async with against(script) as server:
        await asyncio.gather(*(server.request("GET", "/x") for _ in range(100)))
    assert least <= opened <= most


async def test_a_request_that_is_given_up_while_it_waits_takes_no_connection_along() -> None:
    go = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request_head(reader):
            await go.wait()
            writer.write(OK)

    async with against(script) as server:
        first = [asyncio.create_task(server.request("GET", "/x")) for _ in range(2)]
        await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(server.request("GET", "/x")) for _ in range(8)]
        await asyncio.sleep(0.01)
        go.set()
        for task in waiting:
            task.cancel()
        assert all([(await task).body == b"ok" for task in first])
        assert await asyncio.gather(*waiting, return_exceptions=True)
        answers = await asyncio.gather(*(server.request("GET", "/x") for _ in range(20)))
    assert [answer.body for answer in answers] == [b"ok"] * 20
