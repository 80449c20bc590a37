"""What two hundred watches over twenty real clusters cost when nothing happens."""

import asyncio
import contextlib
import itertools
import time

import pytest

from figures import figure
from hansa.control import informer
from hansa.kube import resources
from hansa.local import ClusterSpec
from machinery import Machine

CLUSTERS, AT_ONCE = 20, 4
SECONDS, MOST_PERCENT = 70.0, 1.0  # longer than a minute, so that every watch has its bookmark in it
WATCHED = (
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.SERVICES,
    resources.CONFIG_MAPS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.PERSISTENT_VOLUMES,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.ENDPOINT_SLICES,
)


@contextlib.asynccontextmanager
async def many_clusters(fleet):
    specs = [ClusterSpec(f"idle-{number}", scheduler=False) for number in range(CLUSTERS)]
    try:
        yield [
            cluster
            for first in range(0, CLUSTERS, AT_ONCE)
            for cluster in await fleet.up(specs[first : first + AT_ONCE])
        ]
    finally:
        await fleet.down([spec.name for spec in specs if spec.name in fleet.names()])


@pytest.mark.timeout(900)
async def test_two_hundred_idle_watches_cost_almost_nothing(fleet):
    async with contextlib.AsyncExitStack() as stack:
        clusters = await stack.enter_async_context(many_clusters(fleet))
        machine = await stack.enter_async_context(Machine())
        stores = []
        for cluster in clusters:
            client = await stack.enter_async_context(cluster.client("hansa-bench"))
            informers = machine.informers(cluster.name, client)
            stores += [informers.acquire(informer.Scope(resource)) for resource in WATCHED]
        for store in stores:
            await store.freshness.wait_synced(60)
        changes = itertools.count()
        for store in stores:
            store.listen(lambda _: next(changes), lambda obj: [obj.key])
        started = next(changes)
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(SECONDS)
        percent = 100 * (time.process_time() - cpu) / (time.perf_counter() - began)
        assert all(store.freshness.is_known for store in stores)
        print(
            f"\nidle, {len(stores)} watches over {len(clusters)} real clusters, {SECONDS:.0f} s,"
            f" {next(changes) - started - 1} changes"
        )
        figure("of a core, %", percent, most=MOST_PERCENT)
