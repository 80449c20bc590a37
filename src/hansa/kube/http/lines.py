"""The lines of an open stream: watch events and logs. A line may be many megabytes, and a piece may hold many lines."""

from hansa.kube.http.transport import Stream


class Lines:
    """Splits a stream after its newlines, in batches as they come."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest: list[bytes] = []  # joined only when the line is whole: appending to bytes would be quadratic

    async def batch(self) -> list[bytes]:
        """The next whole lines, with their newlines; empty at the end of the stream."""
        lines: list[bytes] = []
        while not lines and (pieces := await self._stream.pieces()):
            for piece in pieces:
                if not self._rest and piece.find(b"\n") == len(piece) - 1:
                    lines.append(piece)  # the API server sends each event as a piece of its own
                else:
                    self._split(piece, lines)
        return lines

    def rest(self) -> bytes:
        """What came after the last newline."""
        return b"".join(self._rest)

    def _split(self, piece: bytes, lines: list[bytes]) -> None:
        # Unlike `split`, `find` does not look at each single byte: many times faster on long lines.
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            self._rest.append(piece[start : end + 1])
            lines.append(b"".join(self._rest))
            self._rest = []
            start = end + 1
        if start < len(piece):
            self._rest.append(piece[start:])
