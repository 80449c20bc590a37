import asyncio
import contextlib

import aiohttp
import pytest
from prometheus_client import parser

from eventually import eventually
from hansa.control import health_server
from hansa.runtime import errors, metrics, tasks


@contextlib.asynccontextmanager
async def served(**options):
    registry = metrics.Registry()
    registry.counter("things_total", "Things.").inc(3)
    server = health_server.HealthServer(metrics=registry, **options)
    task = asyncio.create_task(server.run())
    try:

        async def is_up():
            return server.port

        await eventually(is_up, every=0.01)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
            yield session, server
    finally:
        await tasks.cancel(task)


async def get(session, path):
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_readyz_answers_ok_or_lists_the_reasons():
    reasons = ["r2 is not ready", "r3 is not ready"]
    async with served(not_ready=lambda: reasons) as (session, _):
        assert await get(session, "/healthz") == (200, "ok")
        assert await get(session, "/readyz") == (503, "r2 is not ready\nr3 is not ready")
        reasons.clear()
        assert await get(session, "/readyz") == (200, "ok")
        assert (await get(session, "/"))[0] == 404


async def test_metrics_are_served_as_prometheus_reads_them():
    async with served() as (session, _), session.get("/metrics") as response:
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        families = {family.name: family for family in parser.text_string_to_metric_families(await response.text())}
        assert [sample.value for sample in families["things"].samples] == [3]


async def test_a_port_in_use_is_reported_in_a_sentence():
    async with served() as (_, server):
        sentence = rf"cannot serve health endpoints on 127.0.0.1:{server.port}: .*in use"
        with pytest.raises(errors.HansaError, match=sentence):
            await health_server.HealthServer(metrics=metrics.Registry(), port=server.port).run()
