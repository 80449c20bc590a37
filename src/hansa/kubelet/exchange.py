"""One request and its answer on a connection of the kubelet API; h11 reads and writes HTTP/1.1.

A connection has one exchange: answers say `Connection: close`. What a request means is left to the server.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import h11

from hansa.kubelet.refusal import Refusal

LARGEST_HEAD = 2**18  # bytes; the arguments of an exec are in its query
CHUNK = 2**16  # bytes read at a time
ANSWER_SECONDS = 10.0  # to send a whole answer, and more for a large one:
SLOWEST = 2**18  # bytes per second
Headers = Iterable[tuple[str, str]]


class Exchange:
    """The exchange of one connection. The caller closes the writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        self.method = self.target = ""
        self.headers: list[tuple[str, str]] = []  # names in lower case, which may repeat
        self.is_answered = False

    async def receive(self) -> None:
        """Read the head of the request. Raises EOFError if there is none, and a Refusal if it is not valid."""
        try:
            request = await self._event()
            assert isinstance(request, h11.Request), request  # see _event
            self.method, self.target = request.method.decode("latin-1"), request.target.decode("latin-1")
            self.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers]
            if not isinstance(await self._event(), h11.EndOfMessage):
                raise Refusal(400, "a request must not have a body")
        except h11.RemoteProtocolError as error:
            raise Refusal(error.error_status_hint, str(error)) from None

    @property
    def certificate(self) -> Mapping[str, Any]:
        """The caller's certificate, which the TLS handshake verified; empty if it has none."""
        return self.writer.get_extra_info("peercert") or {}

    @property
    def certificate_der(self) -> bytes:
        """The same certificate in its binary form; empty if the caller has none."""
        return self.writer.get_extra_info("ssl_object").getpeercert(binary_form=True) or b""

    def header(self, name: str) -> str:
        """The first value of a header; empty if there is none."""
        return next((value for one, value in self.headers if one == name), "")

    async def answer(self, status: int, body: bytes, *, content: str = "text/plain; charset=utf-8") -> None:
        """Send a whole answer. Raises TimeoutError if the other side does not read it."""
        self._head(status, [("Content-Type", content), ("Content-Length", str(len(body)))])
        self.writer.write(self._sent(h11.Data(body)) + self._sent(h11.EndOfMessage()))
        async with asyncio.timeout(ANSWER_SECONDS + len(body) / SLOWEST):
            await self.writer.drain()

    async def start(self, *, content: str = "text/plain; charset=utf-8") -> None:
        """Send the head of an answer whose body follows in pieces."""
        self._head(200, [("Content-Type", content), ("Transfer-Encoding", "chunked")])
        await self.writer.drain()

    async def send(self, piece: bytes) -> None:
        """Send a piece of the body; waits while the other side does not read."""
        self.writer.write(self._sent(h11.Data(piece)))
        await self.writer.drain()

    async def end(self) -> None:
        """Send the end of the body."""
        self.writer.write(self._sent(h11.EndOfMessage()))
        await self.writer.drain()

    async def upgrade(self, headers: Headers) -> bytes:
        """Switch protocols. Returns the bytes that the other side sent after its request."""
        self.is_answered = True
        self.writer.write(self._sent(h11.InformationalResponse(status_code=101, headers=list(headers), reason=b"")))
        await self.writer.drain()
        early, _ = self._http.trailing_data
        return early

    async def closed(self) -> None:
        """Return when the other side closes the connection; what it sends is dropped."""
        while await self._reader.read(CHUNK):
            pass

    @property
    def reader(self) -> asyncio.StreamReader:
        """The bytes of an upgraded connection."""
        return self._reader

    def _head(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.is_answered = True
        all_headers = [*headers, ("Connection", "close"), ("X-Content-Type-Options", "nosniff")]
        self.writer.write(self._sent(h11.Response(status_code=status, headers=all_headers)))

    def _sent(self, event: h11.Event) -> bytes:
        return self._http.send(event) or b""

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(CHUNK))
        if type(event) is h11.ConnectionClosed:
            raise EOFError
        return event
