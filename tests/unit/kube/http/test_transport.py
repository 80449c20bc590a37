"""Transports compose: credentials, requests in flight and Retry-After are wrappers of one shape."""

import asyncio

import pytest

from hansa.kube.credentials import Access, Credentials
from hansa.kube.credentials.login import Login, Text
from hansa.kube.http import transport
from hansa.kube.http.connection import ProxyRefused
from hansa.kube.http.framing import Malformed
from hansa.kube.http.limits import LONGEST_RETRY_AFTER
from hansa.kube.http.transport import Request, Response
from simulation import World, run

REQUEST = Request("GET", "/api", doing="read the API")


def login(token: str) -> Login:
    return Login(
        server="https://a.example",
        server_origin="field server",
        origin="test",
        token=Text(token.encode(), "field token"),
        proxy_origin="field proxy",
    )


async def current(token: str = "hush") -> Access:
    return await Credentials(lambda: login(token)).access()


@pytest.mark.parametrize(("answers", "calls"), [([401, 200], 2), ([401, 401, 200], 2), ([403, 200], 1)])
async def test_refused_credentials_are_renewed_once(answers: list[int], calls: int) -> None:
    tokens = iter(["one", "two", "three"])
    seen: list[str] = []

    async def server(request: Request) -> Response:
        assert request.access is not None
        seen.append(dict(request.access.headers)["Authorization"])
        return Response(answers[len(seen) - 1], {})

    response = await transport.authorized(server, Credentials(lambda: login(next(tokens))))(REQUEST)
    assert seen == ["Bearer one", "Bearer two"][:calls]
    assert response.status == answers[calls - 1]


async def test_a_refusal_is_not_repeated_when_there_is_nothing_newer() -> None:
    calls = 0

    async def server(_: Request) -> Response:
        nonlocal calls
        calls += 1
        return Response(401, {})

    await transport.authorized(server, Credentials(lambda: login("same")))(REQUEST)
    assert calls == 1


def test_requests_in_flight_are_bounded() -> None:
    async def main(world: World) -> int:
        flying = most = 0

        async def server(_: Request) -> Response:
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            await world.clock.sleep(1)
            flying -= 1
            return Response(200, {})

        send = transport.bounded(server, 3)
        await asyncio.gather(*(send(REQUEST) for _ in range(10)))
        assert world.clock.now() == 4
        return most

    assert run(main) == 3


@pytest.mark.parametrize(
    ("status", "retry_after", "calls", "seconds"),
    [
        (429, "2", 6, 10),  # as often as ten seconds allow
        (503, "4", 3, 8),
        (429, "0", 11, 10),  # never a busy loop
        (429, "11", 1, 0),  # longer than the whole request may take
        (429, None, 1, 0),  # a disruption budget's refusal of an eviction, for one
        (503, None, 1, 0),
        (429, "tomorrow", 1, 0),
        (429, "\u00b2", 1, 0),  # a digit to str.isdigit(), not to float()
        (429, "\u0661", 1, 0),
        (429, "1_0", 1, 0),
        (429, "-1", 1, 0),
        (429, "9" * 400, 1, 0),  # more than a float holds
        (409, "1", 1, 0),
    ],
)
def test_requests_are_retried_after_retry_after(
    status: int, retry_after: str | None, calls: int, seconds: float
) -> None:
    async def main(world: World) -> tuple[int, float, int]:
        count = 0

        async def server(_: Request) -> Response:
            nonlocal count
            count += 1
            return Response(status, {"Retry-After": retry_after} if retry_after else {})

        response = await transport.patient(server, world.clock, within=10)(REQUEST)
        return count, world.clock.now(), response.status

    assert run(main) == (calls, seconds, status)


@pytest.mark.parametrize("seconds", ["61", "3600", "999999999"])
def test_retry_after_is_limited(seconds: str) -> None:
    assert transport.retry_after(Response(429, {"Retry-After": seconds})) == LONGEST_RETRY_AFTER


def test_an_answer_ends_the_retries() -> None:
    async def main(world: World) -> int:
        answers = iter([429, 429, 200])

        async def server(_: Request) -> Response:
            return Response(next(answers), {"Retry-After": "1"})

        return (await transport.patient(server, world.clock, within=10)(REQUEST)).status

    assert run(main) == 200


async def test_what_the_network_raises_becomes_a_sentence_without_secrets() -> None:
    access = await current()
    for error, sentence in (
        (ConnectionResetError("hush"), "the connection to https://a.example broke (ConnectionResetError)"),
        (ProxyRefused("hush"), "the proxy in field proxy does not connect to https://a.example"),
        (
            Malformed("a chunk has no valid size"),
            "the answer of https://a.example is not valid HTTP: a chunk has no valid size",
        ),
        (TimeoutError(), "https://a.example, from field server, does not answer"),
        (
            OSError(111, "Connection refused"),
            "https://a.example, from field server, cannot be reached (connection refused)",
        ),
        (OSError(32, "hush"), "the connection to https://a.example broke (broken pipe)"),
    ):
        text = str(transport.unreachable(error, access, "list pods"))
        assert text == f"cannot list pods: {sentence}"
        assert "hush" not in text + repr(REQUEST) + repr(access)


@pytest.mark.parametrize("headers", [(("A", "b\r\nC: d"),), (("A\n", "b"),)])
async def test_a_line_break_never_makes_a_header(headers: tuple[tuple[str, str], ...]) -> None:
    request = Request("GET", "/", doing="x", headers=headers, access=await current())
    with pytest.raises(ValueError, match="line break"):
        await transport.Http()(request)
