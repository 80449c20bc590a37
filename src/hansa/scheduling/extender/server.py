"""Serves the extender to kube-scheduler over HTTP on loopback. There is no authentication: it runs beside it."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from hansa.runtime import errors
from hansa.scheduling.extender import messages
from hansa.scheduling.extender.extender import Extender
from hansa.scheduling.extender.messages import Bound, Filtered, InvalidMessage

LARGEST_BODY: Final = 4 << 20  # bytes; a pod has at most 1.5 MiB, and 5,000 names of nodes 1.2 MiB
SHUTDOWN_SECONDS: Final = 1.0
Answer = Callable[[bytes], Awaitable[Any]]


class Server:
    """An HTTP server for one extender."""

    def __init__(self, extender: Extender, host: str, port: int) -> None:
        check_loopback(host)
        self._extender, self._host, self._port = extender, host, port

    async def run(self) -> None:
        """Serve until cancelled."""
        app = web.Application(client_max_size=LARGEST_BODY)
        for path, answer in (("/filter", self._filter), ("/prioritize", self._prioritize), ("/bind", self._bind)):
            app.router.add_post(path, _handler(answer))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
            await asyncio.get_running_loop().create_future()
        except OSError as error:
            where = f"{self._host}:{self._port}"
            raise errors.HansaError(f"cannot serve the extender on {where}: {error.strerror or error}") from None
        finally:
            await runner.cleanup()

    async def _filter(self, body: bytes) -> Filtered:
        try:
            return self._extender.filter(messages.candidates(body))
        except InvalidMessage as error:  # kube-scheduler puts it into the events of the pod
            return Filtered([], {}, str(error))

    async def _prioritize(self, body: bytes) -> list[messages.Priority]:
        return self._extender.prioritize(messages.candidates(body))

    async def _bind(self, body: bytes) -> Bound:
        try:
            return await self._extender.bind(messages.binding(body))
        except InvalidMessage as error:
            return Bound(str(error))


def check_loopback(host: str) -> None:
    """Refuse an address that others can reach."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise errors.HansaError(f"--bind-address {host} is not an IP address, such as 127.0.0.1") from None
    if not is_loopback:
        raise errors.HansaError(
            f"--bind-address {host} is not a loopback address: the extender has no authentication, so run it beside"
            " kube-scheduler, in the same pod or on the same machine"
        )


def _handler(answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            result = await answer(await request.read())
        except InvalidMessage as error:
            return web.Response(status=400, text=str(error))
        return web.Response(body=msgspec.json.encode(result), content_type="application/json")

    return handle
