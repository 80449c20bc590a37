"""Framing: the same body is read however an answer is cut, and what is not valid HTTP/1.1 is refused."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.http import framing
from hansa.kube.http.framing import Body, Chunked, Endless, Malformed, Sized

CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
CUTS = st.lists(st.integers(0, 400), max_size=12)
TRAILERS = st.sampled_from([b"", b"Expires: never\r\n", b"A: b\r\nC: d\r\n"])


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data in pieces, cut at those places."""
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def body(head: bytes) -> Body:
    """The framing of the body after a head."""
    return framing.body_of(framing.parse_head(head))


def fed(body: Body, piece: bytes) -> bytes:
    """Feed a piece as a connection does."""
    return b"".join(body.feed(piece))


@given(CHUNKS, CUTS, TRAILERS, st.sampled_from([b"", b";name=value"]))
def test_a_chunked_body_is_the_same_however_it_is_cut(
    chunks: list[bytes], cuts: list[int], trailer: bytes, extension: bytes
) -> None:
    wire = (
        b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks) + b"0\r\n" + trailer + b"\r\n"
    )
    body = Chunked()
    *early, last = pieces(wire, cuts)
    found = b"".join(fed(body, piece) for piece in early)
    assert not body.is_done
    assert found + fed(body, last) == b"".join(chunks)
    assert body.is_done


@given(st.binary(max_size=60), CUTS)
def test_a_body_with_a_content_length_ends_there(content: bytes, cuts: list[int]) -> None:
    body = Sized(len(content))
    assert b"".join(fed(body, piece) for piece in pieces(content, cuts)) == content
    assert body.is_done


@pytest.mark.parametrize(
    "wire",
    [
        *(b"zz\r\n", b"\r\n", b"-1\r\n", b"+1\r\n", b"1_0\r\n", b"0x1f\r\n", b" 1\r\n", b"1 ;a\r\n"),
        *("\u0661\r\n".encode(), "\u00b2\r\n".encode("latin-1")),
        *(b"3\r\nabcd\r\n", b"3\r\nabcd", b"1" * 20_000, b"f" * 16 + b"\r\n", b"0" * 5000 + b"1\r\n"),
        *(b"0\r\nno colon\r\n\r\n", b"0\r\n" + b"A: b\r\n" * 10_000),
    ],
    ids=lambda wire: repr(wire[:12]),
)
def test_an_invalid_chunk_is_refused(wire: bytes) -> None:
    with pytest.raises(Malformed):
        fed(Chunked(), wire)


def test_the_head_decides_how_the_body_ends() -> None:
    status, headers, is_kept = framing.parse_head(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX-A: 1\r\nX-A: 2\r\nEmpty:")
    assert (status, headers["Content-Length"], headers.getall("x-a"), headers["Empty"]) == (200, "5", ["1", "2"], "")
    assert is_kept
    assert isinstance(body(b"HTTP/1.1 200 OK\r\nContent-Length: 5"), Sized)
    assert isinstance(body(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5"), Sized)
    assert isinstance(body(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 5"), Chunked)
    assert isinstance(body(b"HTTP/1.1 200"), Endless)
    assert body(b"HTTP/1.1 204 No Content").is_done


@pytest.mark.parametrize(
    "length",
    ["", "5, 6", "5,", "-1", "+1", "1_0", "0x5", "\u00b2", "\u00bd", "1" * 19, "1" * 5000, "5\r\nContent-Length: 6"],
)
def test_an_invalid_content_length_is_refused(length: str) -> None:
    with pytest.raises(Malformed, match="Content-Length"):
        body(f"HTTP/1.1 200 OK\r\nContent-Length: {length}".encode("latin-1"))


@pytest.mark.parametrize("coding", ["", "gzip", "gzip, chunked", "xchunked", "chunked\r\nTransfer-Encoding: chunked"])
def test_a_transfer_encoding_other_than_chunked_is_refused(coding: str) -> None:
    with pytest.raises(Malformed, match="Transfer-Encoding"):
        body(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}".encode())


@pytest.mark.parametrize(
    "head",
    [
        *(b"", b"SSH-2.0-x", b"HTTP/2 200", b"HTTP/1.1 abc", b"HTTP/1.2 200", b"HTTP/1.1 2000", b"HTTP/1.1 99 x"),
        *(
            b"HTTP/1.1 099",
            b"HTTP/1.1 600",
            b"HTTP/1.1  200",
            b"HTTP/1.1 \xb2\xb2\xb2",
            "HTTP/1.1 \u0662\u0660\u0660".encode(),
        ),
        *(b"HTTP/1.1 200 OK\r\nno colon", b"HTTP/1.1 200 OK\r\nA : b", b"HTTP/1.1 200 OK\r\n folded: b"),
        *(b"HTTP/1.1 200 OK\r\nA: b\nC: d", b"HTTP/1.1 200 OK\r\nA: b\x00", b"HTTP/1.1 200 OK\r\n: b"),
        b"HTTP/1.1 200 OK" + b"\r\nA: b" * 101,
    ],
    ids=lambda head: repr(head[-16:]),
)
def test_an_invalid_head_is_refused(head: bytes) -> None:
    with pytest.raises(Malformed):
        framing.parse_head(head)


@pytest.mark.parametrize(
    ("head", "is_kept"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", False),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive, close", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: close", False),
        (b"HTTP/1.1 200 OK\r\nConnection: closed", True),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked", False),
    ],
)
def test_a_connection_is_kept_only_if_the_server_keeps_it(head: bytes, is_kept: bool) -> None:
    assert framing.parse_head(head).is_kept is is_kept


@pytest.mark.parametrize(("framed", "wire"), [(Sized(2), b"ok"), (Sized(0), b""), (Chunked(), b"2\r\nok\r\n0\r\n\r\n")])
def test_bytes_after_the_body_are_noticed(framed: Body, wire: bytes) -> None:
    fed(framed, wire)
    assert framed.is_done
    assert not framed.has_surplus
    fed(framed, b"HTTP/1.1 200 OK")
    assert framed.has_surplus
