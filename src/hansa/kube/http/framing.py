"""HTTP/1.1 framing without I/O: the head of an answer, and where its body ends."""

from collections.abc import Mapping
from typing import Protocol

from multidict import CIMultiDict

LONGEST_LINE = 2**14  # bytes of a chunk's size line or trailer


class Malformed(ConnectionError):
    """What came is not HTTP."""


class Body(Protocol):
    """Takes raw bytes in and gives the body's bytes out."""

    is_done: bool

    def feed(self, come: bytes) -> list[bytes]:
        """Take the next bytes of the connection; the pieces of the body in them."""


def parse_head(head: bytes) -> tuple[int, CIMultiDict[str]]:
    """The status and the headers of an answer, whose head has come whole."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise Malformed("not an HTTP/1 answer")
    pairs = (line.partition(":") for line in lines)
    return int(rest[:3]), CIMultiDict([(name, value.strip()) for name, _, value in pairs if name])


def body_of(status: int, headers: Mapping[str, str]) -> Body:
    """How the body of an answer ends."""
    if status in (204, 304) or status < 200:
        return Sized(0)
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return Chunked()
    length = headers.get("Content-Length")
    if length is None:
        return Endless()
    if not length.isdigit():
        raise Malformed("a Content-Length that is not a number")
    return Sized(int(length))


class Sized:
    """A body whose length was told."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.is_done = length == 0

    def feed(self, come: bytes) -> list[bytes]:
        piece = come[: self._left]
        self._left -= len(piece)
        self.is_done = self._left == 0
        return [piece] if piece else []


class Endless:
    """A body that ends with its connection."""

    is_done = False

    def feed(self, come: bytes) -> list[bytes]:
        return [come] if come else []


class Chunked:
    """A body in chunks. A watch is one without an end."""

    def __init__(self) -> None:
        self.is_done = False
        self._left = 0  # bytes of the current chunk that are still to come
        self._rest = b""  # the beginning of a line that is not yet whole
        self._after_chunk = False  # the line break that ends a chunk is still to come
        self._in_trailer = False

    def feed(self, come: bytes) -> list[bytes]:
        if self._rest:
            come, self._rest = self._rest + come, b""
        at, end = 0, len(come)
        pieces: list[bytes] = []
        while not self.is_done:
            if self._left:
                stop = min(at + self._left, end)
                if stop == at:
                    break
                pieces.append(come[at:stop])
                self._left -= stop - at
                at = stop
                self._after_chunk = self._left == 0
                continue
            if self._after_chunk and come.startswith(b"\r\n", at):
                self._after_chunk = False
                at += 2
            stop = come.find(b"\r\n", at)
            if stop < 0:
                self._rest = self._unfinished(come[at:])
                break
            self._line(come[at:stop])
            at = stop + 2
        return pieces

    def _line(self, line: bytes) -> None:
        if self._after_chunk:
            raise Malformed("a chunk that is longer than it said")
        if self._in_trailer:
            self.is_done = not line
        else:
            self._left = _size(line)
            if self._left < 0:
                raise Malformed("a chunk without a size")
            self._in_trailer = self._left == 0

    @staticmethod
    def _unfinished(line: bytes) -> bytes:
        if len(line) > LONGEST_LINE:
            raise Malformed("a line without end")
        return line


def _size(line: bytes) -> int:
    try:
        return int(line if line.isalnum() else line.partition(b";")[0].strip(b" \t"), 16)
    except ValueError:
        raise Malformed("a chunk without a size") from None
