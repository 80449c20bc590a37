"""Framing: however an answer is cut into pieces, the same body comes out."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.http import framing
from hansa.kube.http.framing import Chunked, Endless, Malformed, Sized

CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=8)
CUTS = st.lists(st.integers(0, 400), max_size=12)
TRAILERS = st.sampled_from([b"", b"Expires: never\r\n", b"A: b\r\nC: d\r\n"])


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data in pieces, cut at those places."""
    places = sorted({0, *(cut for cut in cuts if cut < len(data)), len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def fed(body: framing.Body, piece: bytes) -> bytes:
    """Feed a piece as it comes from a connection."""
    return b"".join(body.feed(piece))


@given(CHUNKS, CUTS, TRAILERS, st.sampled_from([b"", b";name=value"]))
def test_a_chunked_body_comes_out_however_it_is_cut(
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
def test_a_body_of_a_told_length_ends_there(content: bytes, cuts: list[int]) -> None:
    body = Sized(len(content))
    assert b"".join(fed(body, piece) for piece in pieces(content, cuts)) == content
    assert body.is_done


@pytest.mark.parametrize(
    "wire",
    [b"zz\r\n", b"\r\n", b"-1\r\n", b"3\r\nabcd\r\n", b"1" * 20_000],
    ids=lambda wire: repr(wire[:8]),
)
def test_what_is_no_chunk_is_refused(wire: bytes) -> None:
    with pytest.raises(Malformed):
        fed(Chunked(), wire)


def test_the_head_tells_how_the_body_ends() -> None:
    status, headers = framing.parse_head(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX-A: 1\r\nX-A: 2\r\nEmpty:")
    assert (status, headers["Content-Length"], headers.getall("x-a"), headers["Empty"]) == (200, "5", ["1", "2"], "")
    assert isinstance(framing.body_of(200, headers), Sized)
    assert isinstance(framing.body_of(200, {"Transfer-Encoding": "chunked", "Content-Length": "5"}), Chunked)
    assert isinstance(framing.body_of(200, {}), Endless)
    assert framing.body_of(204, {}).is_done
    with pytest.raises(Malformed):
        framing.body_of(200, {"Content-Length": "5, 6"})


@pytest.mark.parametrize("head", [b"", b"SSH-2.0-x", b"HTTP/2 200", b"HTTP/1.1 abc"])
def test_what_is_no_http_is_refused(head: bytes) -> None:
    with pytest.raises(Malformed):
        framing.parse_head(head)
