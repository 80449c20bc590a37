"""What the outside asks a running program: /healthz, /readyz and /metrics on a loopback port.

It answers from functions that it is given; what health means is left to them.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from hansa.runtime import errors, metrics

Troubles = Callable[[], list[str]]
LOOPBACK = "127.0.0.1"


class HealthServer:
    """A small HTTP server. `sick` and `unready` answer with sentences; none means well."""

    def __init__(
        self,
        *,
        metrics: metrics.Registry,
        sick: Troubles = list,
        unready: Troubles = list,
        host: str = LOOPBACK,
        port: int = 0,
    ) -> None:
        self._metrics, self._sick, self._unready = metrics, sick, unready
        self._host, self._wanted_port = host, port
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled; `port` tells where when the wanted port was 0."""
        app = web.Application()
        app.router.add_get("/healthz", _answering(self._sick))
        app.router.add_get("/readyz", _answering(self._unready))
        app.router.add_get("/metrics", self._serve_metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await self._listen(runner)
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        try:
            await web.TCPSite(runner, self._host, self._wanted_port).start()
        except OSError as error:
            where = f"{self._host}:{self._wanted_port}"
            raise errors.HansaError(f"cannot serve health on {where}: {error.strerror or error}") from None
        self.port = runner.addresses[0][1]

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text().encode(), headers={"Content-Type": metrics.CONTENT_TYPE})


def _answering(troubles: Troubles) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        found = troubles()
        return web.Response(status=503 if found else 200, text="\n".join(found) or "ok")

    return answer
