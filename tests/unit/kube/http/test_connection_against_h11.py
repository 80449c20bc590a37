"""Connections beside h11, a reference implementation: what a connection accepts, h11 accepts with the same meaning.

The reverse is not promised: folded headers, bare newlines and more are refused here.
"""

import asyncio
import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import h11
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube.http.connection import Connection

Headers = frozenset[tuple[str, str]]
LIMIT = 2**20  # bytes of a body
TURNS = 10  # of the event loop, after which a server that sent all ends the connection
REQUEST = h11.Request(method="GET", target="/", headers=[("Host", "test")])

STATUS = st.sampled_from(
    ["200", "201", "204", "304", "404", "500", "100", "101", "103", "099", "600", "2 0", "²00", "٢٠٠"]
)
LENGTH = st.sampled_from(
    ["0", "3", "5", "05", "5, 5", "5,", "", "-1", "+5", "1_0", "0x5", "²", "\u0665", "5" * 30, "5" * 5000]
)
CODING = st.sampled_from(["chunked", "Chunked", "gzip", "gzip, chunked", "chunked, chunked", ""])
CONNECTION = st.sampled_from(["close", "keep-alive", "Keep-Alive, Close", "upgrade", "closed", ""])
OTHER = st.tuples(
    st.sampled_from(["A", "b", "X-Y", "A ", " A", "", "Ä", "A\x00", "A\tB"]),
    st.text(alphabet="a ,\t\x00\x0b\x0c\x7f\n\r²", max_size=4),
)
HEADER = st.one_of(
    st.tuples(st.sampled_from(["Content-Length", "content-length"]), LENGTH),
    st.tuples(st.just("Transfer-Encoding"), CODING),
    st.tuples(st.just("Connection"), CONNECTION),
    OTHER,
)
SIZE = st.sampled_from(
    ["3", "003", "3;a=b", "3 ", "3 ;a", "0x3", "1_0", "+3", "-3", "", "٣", "3" * 30, "0" * 5000 + "3"]
)


@st.composite
def chunks(draw: st.DrawFn) -> bytes:
    """A chunked body, or almost one."""
    sizes = draw(st.lists(st.one_of(st.just("3"), SIZE), max_size=3))
    parts = [f"{size}\r\n".encode() + draw(st.sampled_from([b"abc", b"ab", b"abcd"])) + b"\r\n" for size in sizes]
    return b"".join(parts) + draw(
        st.sampled_from([b"0\r\n\r\n", b"0\r\nA: b\r\n\r\n", b"0\r\nA b\r\n\r\n", b"0\r\n", b""])
    )


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """An answer of a server, or almost one."""
    interim = draw(
        st.lists(st.sampled_from([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103\r\nA: b\r\n\r\n"]), max_size=2)
    )
    version = draw(st.sampled_from(["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1"]))
    status = draw(st.one_of(st.just("200"), STATUS))
    reason = draw(st.sampled_from([" OK", "", " ", " \x00", " ²"]))
    head = f"{version} {status}{reason}\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in draw(st.lists(HEADER, max_size=3))
    )
    body = draw(st.one_of(chunks(), st.sampled_from([b"", b"abc", b"abcde", b"abcdefgh"])))
    return b"".join(interim) + head.encode() + b"\r\n" + body


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A valid answer of which some bytes are replaced, removed or doubled."""
    valid = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc",
    ]
    wire = bytearray(draw(st.sampled_from(valid)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(wire) - 1))
        wire[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b"\r", b"\n", b" ", b"\x00", b"0", b"_", b"x", b":", b";", b"\xb2"])
        )
    return bytes(wire)


@dataclass(frozen=True)
class Accepted:
    """A complete answer."""

    status: int
    headers: Headers
    body: bytes
    is_reusable: bool


class Unused(asyncio.Transport):
    """The transport of a connection whose bytes are given by the test."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return False


async def by_connection(pieces: list[bytes]) -> Accepted | None:
    connection = Connection()
    connection.connection_made(Unused())
    loop = asyncio.get_running_loop()

    def receive(turns: int = TURNS) -> None:
        if pieces:
            connection.data_received(pieces.pop(0))
            loop.call_soon(receive)
        elif turns:
            loop.call_soon(receive, turns - 1)
        else:
            connection.eof_received()

    loop.call_soon(receive)
    try:
        status, headers, _ = await connection.exchange(b"")
        body = await connection.body(LIMIT)
    except ConnectionError:
        return None
    while pieces:
        await asyncio.sleep(0)
    is_reusable = connection.is_reusable
    return Accepted(status, _comparable(headers.items()), body, is_reusable)


def by_h11(wire: bytes) -> Accepted | None:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=2**20)
    connection.send(REQUEST)
    connection.send(h11.EndOfMessage())
    connection.receive_data(wire)
    has_ended = False
    response, body = None, b""
    try:
        while True:
            match connection.next_event():
                case h11.Response() as response:
                    pass
                case h11.Data(data=data):
                    body += data
                case h11.EndOfMessage():
                    break
                case h11.NEED_DATA if not has_ended:
                    connection.receive_data(b"")
                    has_ended = True
                case h11.InformationalResponse():
                    pass
                case _:
                    return None
    except h11.RemoteProtocolError:
        return None
    assert response is not None
    headers = _comparable((name.decode(), value.decode("latin-1")) for name, value in response.headers)
    is_reusable = connection.their_state is h11.DONE and not connection.trailing_data[0]
    return Accepted(response.status_code, headers, body, is_reusable)


def _comparable(headers: Iterable[tuple[str, str]]) -> Headers:
    return frozenset((name.lower(), value.lower()) for name, value in headers)


@settings(max_examples=1000)
@given(st.one_of(answers(), damaged()), st.lists(st.integers(0, 200), max_size=4))
def test_h11_accepts_what_a_connection_accepts(wire: bytes, cuts: list[int]) -> None:
    places = sorted({0, *(cut for cut in cuts if cut < len(wire)), len(wire)})
    found = asyncio.run(by_connection([wire[start:end] for start, end in itertools.pairwise(places)]))
    if found is None:
        return
    expected = by_h11(wire)
    assert expected is not None
    assert (found.status, found.headers, found.body) == (expected.status, expected.headers, expected.body)
    assert not found.is_reusable or expected.is_reusable


@given(
    st.binary(max_size=300), st.sampled_from(["sized", "chunked", "endless"]), st.lists(st.integers(0, 300), max_size=4)
)
def test_both_accept_valid_answers(content: bytes, framing: str, cuts: list[int]) -> None:
    head, body = {
        "sized": (b"Content-Length: %d\r\n" % len(content), content),
        "chunked": (b"Transfer-Encoding: chunked\r\n", _chunked(content)),
        "endless": (b"", content),
    }[framing]
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + head + b"\r\n" + body
    places = sorted({0, *(cut for cut in cuts if cut < len(wire)), len(wire)})
    found = asyncio.run(by_connection([wire[start:end] for start, end in itertools.pairwise(places)]))
    assert found is not None
    expected = by_h11(wire)
    assert expected is not None
    assert (found.status, found.headers, found.body) == (expected.status, expected.headers, expected.body)
    assert found.body == content
    assert found.is_reusable is (framing != "endless")


def _chunked(content: bytes) -> bytes:
    parts = [content[start : start + 100] for start in range(0, len(content), 100)]
    return b"".join(b"%X\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
