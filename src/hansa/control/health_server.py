"""Serves /healthz, /readyz and /metrics of a program over HTTP, on loopback by default.

Whether the program is healthy and ready is computed by functions that the caller gives.
"""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from hansa.runtime import errors, metrics

Reasons = Callable[[], list[str]]
LOOPBACK = "127.0.0.1"


class HealthServer:
    """An HTTP server. `unhealthy` and `not_ready` return the reasons; an empty list means healthy or ready."""

    def __init__(
        self,
        *,
        metrics: metrics.Registry,
        unhealthy: Reasons = list,
        not_ready: Reasons = list,
        host: str = LOOPBACK,
        port: int = 0,
    ) -> None:
        self._metrics, self._unhealthy, self._not_ready = metrics, unhealthy, not_ready
        self._host, self._wanted_port = host, port
        self.port = 0

    async def run(self) -> None:
        """Serve until cancelled; with the requested port 0, the attribute `port` has the chosen one."""
        app = web.Application()
        app.router.add_get("/healthz", _answering(self._unhealthy))
        app.router.add_get("/readyz", _answering(self._not_ready))
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
            raise errors.HansaError(f"cannot serve health endpoints on {where}: {error.strerror or error}") from None
        self.port = runner.addresses[0][1]

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text().encode(), headers={"Content-Type": metrics.CONTENT_TYPE})


def _answering(reasons: Reasons) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        found = reasons()
        return web.Response(status=503 if found else 200, text="\n".join(found) or "ok")

    return answer
