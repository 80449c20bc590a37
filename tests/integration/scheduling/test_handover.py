"""A moved pod is annotated with the cluster that may still have a copy, until that has none or is lost."""

import asyncio

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.runtime import clock
from hansa.tenancy.pool.reachability_reports import Reporter

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine
MARK = "tenancy.x-k8s.io/moved-from.r2"


async def test_a_pod_that_moves_bears_a_mark_until_its_former_cluster_is_lost(pool, namespace):
    await pool.namespace(namespace, {"cpu": "200m", "memory": "200Mi"})
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    for name in "ab":
        await pool.pod(namespace, name)
    [moves] = [name for name in "ab" if await pool.given(namespace, name) == "r2"]
    await pool.add("r2", **{"hansa.dev/leaving": "true"})
    await pool.given(namespace, moves, "r1")
    found = await pool.meta.client.get(resources.PODS, moves, namespace=namespace)
    assert MARK in found.annotations
    with pool.supers["r2"].frozen():
        await pool.meta.there(resources.PODS, moves, namespace, when=_is_unmarked, within=90)
    assert (await pool.given(namespace, moves)) == "r1"
    await pool.add("r2", **{"hansa.dev/leaving": "false"})


def _is_unmarked(found):
    return MARK not in found["metadata"]["annotations"]


async def test_a_cluster_that_a_syncer_reports_to_reach_is_not_lost(pool, namespace):
    await pool.empty()
    await pool.namespace(namespace, {"cpu": "200m", "memory": "200Mi"})
    await pool.placed(namespace, {"r1": 1, "r2": 1})
    offset = pool.log.stat().st_size
    reporter = Reporter(pool.meta.client, "test", "kube-system", clock.SystemClock())
    began = asyncio.get_running_loop().time()

    async def is_reported_for_long():
        await reporter.report("r2")
        return asyncio.get_running_loop().time() - began > 20  # the scheduler's own patience is 4 s

    with pool.supers["r2"].frozen():
        await eventually(is_reported_for_long, every=0.5)
        await pool.logged("cluster unreachable", after=offset)
        await pool.placed(namespace, {"r1": 1, "r2": 1})
        assert " is=lost" not in pool.log.read_bytes()[offset:].decode()
        await pool.placed(namespace, {"r1": 2})
