"""HTTP/1.1 framing without I/O: the head of an answer, and where its body ends. Used by connections.

It accepts less than RFC 9112 allows: no folded headers, no bare newlines, no transfer coding but `chunked`.
"""

import re
from typing import NamedTuple, Protocol

from multidict import CIMultiDict

MOST_HEADERS = 100  # as in Python's http.client; an API server sends about ten
LONGEST_LINE = 2**14  # bytes of the size line of a chunk, and of all trailers together

# Bytes, so that \d and the like are ASCII: int() accepts other digits, underscores, signs and "0x".
_TEXT = rb"[^\x00-\x08\x0a-\x1f\x7f]*"  # without control characters, but with tabs
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: " + _TEXT + rb")?")
_HEADER = re.compile(rb"([-!#$%&'*+.^_`|~0-9A-Za-z]+):(" + _TEXT + rb")")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;" + _TEXT + rb")?[ \t]*")


class Malformed(ConnectionError):
    """The server did not send valid HTTP. The message never contains what it sent."""


class Head(NamedTuple):
    """The head of an answer."""

    status: int
    headers: CIMultiDict[str]
    is_kept: bool  # whether the server keeps the connection open after the body


class Body(Protocol):
    """Takes the bytes of a connection and returns those of the body."""

    is_done: bool
    has_surplus: bool  # whether bytes followed its end

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of the body in the next bytes of the connection."""


def parse_head(head: bytes) -> Head:
    """Parse the head of an answer, without the empty line that ends it."""
    first, *lines = head.split(b"\r\n")
    status_line = _STATUS_LINE.fullmatch(first)
    if status_line is None:
        raise Malformed("the status line is not that of HTTP/1.0 or 1.1")
    if len(lines) > MOST_HEADERS:
        raise Malformed(f"there are more than {MOST_HEADERS} headers")
    headers = CIMultiDict([_header(line) for line in lines])
    # HTTP/1.0 has keep-alive only as an extension. With both lengths, a proxy may have used the other one (RFC 9112).
    is_ambiguous = "Transfer-Encoding" in headers and "Content-Length" in headers
    is_kept = status_line[1] == b"1" and not is_ambiguous and "close" not in _tokens(headers, "Connection")
    return Head(int(status_line[2]), headers, is_kept)


def body_of(head: Head) -> Body:
    """The framing of the body that follows a head."""
    status, headers, _ = head
    codings = headers.getall("Transfer-Encoding", [])
    if [coding.lower() for coding in codings] not in ([], ["chunked"]):
        raise Malformed("the Transfer-Encoding is not chunked")
    lengths = set(headers.getall("Content-Length", []))
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise Malformed("the Content-Length is not a number")
    if status in (204, 304) or status < 200:
        return Sized(0)
    if codings:
        return Chunked()
    return Sized(int(lengths.pop())) if lengths else Endless()


def _header(line: bytes) -> tuple[str, str]:
    header = _HEADER.fullmatch(line)
    if header is None:
        raise Malformed("a header has no valid name or value")
    return header[1].decode("ascii"), header[2].strip(b" \t").decode("latin-1")


def _tokens(headers: CIMultiDict[str], name: str) -> list[str]:
    """The comma-separated values of a header, in lower case."""
    return [part.strip(" \t").lower() for value in headers.getall(name, []) for part in value.split(",")]


class Sized:
    """A body with a Content-Length."""

    def __init__(self, length: int) -> None:
        self.left = length  # bytes that were not received yet
        self.is_done = length == 0
        self.has_surplus = False

    def feed(self, data: bytes) -> list[bytes]:
        self.has_surplus |= len(data) > self.left
        piece = data[: self.left]
        self.left -= len(piece)
        self.is_done = self.left == 0
        return [piece] if piece else []


class Endless:
    """A body that ends with its connection."""

    is_done = False
    has_surplus = False

    def feed(self, data: bytes) -> list[bytes]:
        return [data] if data else []


class Chunked:
    """A body in chunks, such as that of a watch."""

    def __init__(self) -> None:
        self.is_done = False
        self.has_surplus = False
        self._left = 0  # bytes of the current chunk that were not received yet
        self._rest = b""  # an incomplete line
        self._after_chunk = False  # the line break that ends a chunk follows
        self._in_trailer = False
        self._trailer_size = 0

    def feed(self, data: bytes) -> list[bytes]:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, end = 0, len(data)
        pieces: list[bytes] = []
        while not self.is_done:
            if self._left:
                stop = min(at + self._left, end)
                if stop == at:
                    break
                pieces.append(data[at:stop])
                self._left -= stop - at
                at = stop
                self._after_chunk = self._left == 0
                continue
            if self._after_chunk and data.startswith(b"\r\n", at):
                self._after_chunk = False
                at += 2
            stop = data.find(b"\r\n", at)
            if stop < 0:
                self._rest = self._incomplete(data[at:])
                break
            self._line(data[at:stop])
            at = stop + 2
        self.has_surplus = self.is_done and at < end
        return pieces

    def _line(self, line: bytes) -> None:
        if self._after_chunk:
            raise Malformed("a chunk is longer than its size")
        if self._in_trailer:
            self._trailer(line)
        else:
            chunk = _CHUNK.fullmatch(line)
            if chunk is None:
                raise Malformed("a chunk has no valid size")
            self._left = int(chunk[1], 16)
            self._in_trailer = self._left == 0

    def _trailer(self, line: bytes) -> None:
        if not line:
            self.is_done = True
            return
        _header(line)
        self._trailer_size += len(line)
        if self._trailer_size > LONGEST_LINE:
            raise Malformed(f"the trailers have more than {LONGEST_LINE} bytes")

    def _incomplete(self, line: bytes) -> bytes:
        if self._after_chunk and line not in (b"", b"\r"):
            raise Malformed("a chunk is longer than its size")
        if len(line) > LONGEST_LINE:
            raise Malformed(f"the line of a chunk has more than {LONGEST_LINE} bytes")
        return line
