"""One API server: any request, stream or upgraded connection, with credentials, a deadline and a user agent on each.

The base of the client. It bounds requests in flight and honours Retry-After; it has no rate limit of its own.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Self
from urllib.parse import urlencode

import msgspec

from hansa.kube import decoding, errors, sending
from hansa.kube.credentials import Credentials
from hansa.kube.http import transport
from hansa.kube.http.limits import Limits
from hansa.kube.http.transport import Request, Response, Stream, Transport
from hansa.kube.http.tunnel import Tunnel
from hansa.runtime.clock import Clock, SystemClock

DEADLINE = 30.0  # seconds for a request with all its retries; the API server ends most requests after 60
IN_FLIGHT = 64  # requests per API server; it serves 400 reads and 200 writes at a time by default, to all clients
OURS = frozenset(
    {"host", "user-agent", "authorization", "content-length", "transfer-encoding"}
)  # not taken from a caller


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str


class Server:
    """A pool of connections to one API server. Use it with `async with`. Writes are sent only while `may_send`."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str,
        in_flight: int = IN_FLIGHT,
        deadline: float = DEADLINE,
        keep_managed_fields: bool = False,
        limits: Limits | None = None,
        may_send: sending.MaySend | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.credentials = credentials
        self.limits = limits or Limits()
        self.user_agent = user_agent
        self.keep_managed_fields = keep_managed_fields
        self._deadline, self._may_send = deadline, may_send
        self._clock = clock or SystemClock()
        self._http = transport.Http(self.limits)
        self._send = self._wrapped(transport.bounded(self._http, in_flight))
        self._stream = self._wrapped(self._http)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.credentials!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def version(self) -> str:
        """The server's version, such as v1.35.8."""
        response = await self.request("GET", "/version", doing="read the server's version")
        try:
            return decoding.parse(response.body, _Version).git_version
        except msgspec.DecodeError as error:
            raise errors.Unreachable(f"cannot read the server's version: {error}") from None

    async def request(
        self,
        method: str,
        path: str,
        *,
        doing: str = "",
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content: str = "application/json",
        accept: str = "application/json",
        deadline: float = 0.0,
    ) -> Response:
        """Any request. A refusal is raised; `doing` completes the sentence "cannot …"."""
        headers = [("Accept", accept), *([("Content-Type", content)] if body else [])]
        request = self._request(method, path, query, doing=doing, headers=headers, body=body)
        return await self._answer(request, self._send, deadline or self._deadline)

    async def open(
        self,
        path: str,
        *,
        doing: str = "",
        query: Mapping[str, str] | None = None,
        accept: str = "*/*",
        has_deadline: bool = True,
    ) -> Stream:
        """A GET with a streamed answer: a watch, a log. The deadline is for its head; close it at the end."""
        request = self._request("GET", path, query, doing=doing, headers=[("Accept", accept)], is_stream=True)
        response = await self._answer(request, self._stream, self._deadline if has_deadline else None)
        assert response.stream is not None  # the transport answers so to a stream that is not refused
        return response.stream

    async def tunnel(
        self,
        method: str,
        path: str,
        *,
        headers: Iterable[tuple[str, str]],
        doing: str = "",
        query: Mapping[str, str] | None = None,
    ) -> Tunnel:
        """An upgraded connection (exec, attach, port-forward) as the headers request it, SPDY or WebSocket."""
        asked = [(name, value) for name, value in headers if name.lower() not in OURS]
        request = self._request(method, path, query, doing=doing, headers=asked, is_stream=True)
        response = await self._answer(request, self._stream, self._deadline)
        if response.tunnel is None:
            if response.stream is not None:
                response.stream.close()
            raise errors.Unreachable(f"cannot {request.doing}: the server answered {response.status}, not an upgrade")
        return response.tunnel

    def _wrapped(self, inner: Transport) -> Transport:
        authorized = transport.authorized(inner, self.credentials)
        return transport.patient(authorized, self._clock, within=self._deadline / 2)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        *,
        doing: str,
        headers: Iterable[tuple[str, str]],
        body: bytes = b"",
        is_stream: bool = False,
    ) -> Request:
        return Request(
            method,
            _target(path, query),
            doing=doing or f"{method} {path}",
            headers=(("User-Agent", self.user_agent), *headers),
            body=body,
            is_stream=is_stream,
            may_send=sending.check_of(method, self._may_send),
        )

    async def _answer(self, request: Request, send: Transport, deadline: float | None) -> Response:
        try:
            async with asyncio.timeout(deadline):
                response = await send(request)
        except TimeoutError:
            server = (await self.credentials.access()).server
            raise errors.Unreachable(f"cannot {request.doing}: {server} gave no answer in {deadline:g} s") from None
        if response.status >= 300:
            raise await self._refusal(response, request.doing)
        return response

    async def _refusal(self, response: Response, doing: str) -> errors.ApiError:
        access = await self.credentials.access()
        status = decoding.parse_status(response.status, response.body)
        if status.code == 401:
            reason = access.refusal(self._clock.wall())
            status = msgspec.structs.replace(status, message=f"{status.message or 'Unauthorized'}: {reason}")
        error = errors.from_status(status, doing, access.server)
        if isinstance(error, errors.Throttled):
            error.retry_after = transport.retry_after(response) or error.retry_after
        return error


def _target(path: str, query: Mapping[str, str] | None) -> str:
    pairs = [(name, value) for name, value in (query or {}).items() if value]
    return f"{path}?{urlencode(pairs)}" if pairs else path
