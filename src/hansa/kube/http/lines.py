"""The lines of an open stream: watch events and logs. A line may have megabytes, and a piece may hold many lines.

Used by watches and logs. Decoding a line is left to them.
"""

from hansa.kube.http.limits import MIB, Limits, TooLarge
from hansa.kube.http.transport import Stream


class Lines:
    """Splits a stream after its newlines, in batches as they are received."""

    def __init__(self, stream: Stream, *, doing: str = "read the stream", limit: int = Limits().line) -> None:
        self._stream = stream
        self._doing = doing
        self._limit = limit
        # A bytearray: appending to bytes is quadratic, and a list of small pieces takes more memory than their bytes.
        self._rest = bytearray()

    async def batch(self) -> list[bytes]:
        """The next whole lines, with their newlines; empty at the end of the stream."""
        lines: list[bytes] = []
        while not lines and (pieces := await self._stream.pieces()):
            for piece in pieces:
                if not self._rest and piece.find(b"\n") == len(piece) - 1:
                    lines.append(piece)  # the API server sends each event as a chunk of its own
                else:
                    self._split(piece, lines)
        return lines

    def rest(self) -> bytes:
        """The bytes after the last newline."""
        return bytes(self._rest)

    def _split(self, piece: bytes, lines: list[bytes]) -> None:
        # `find` uses memchr and is many times faster than `split` on long lines.
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            if self._rest:
                self._rest += piece[start : end + 1]
                lines.append(bytes(self._rest))
                self._rest = bytearray()
            else:
                lines.append(piece[start : end + 1])
            start = end + 1
        self._rest += piece[start:]
        if len(self._rest) > self._limit:
            raise TooLarge(f"cannot {self._doing}: a line is longer than {self._limit / MIB:g} MiB")
