"""Renewals of fences: answers are counted, and the state of an agent is reported by an event."""

import asyncio
import types

import pytest

import simulation
from hansa.kube import errors
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.tenancy.pool.fence_renewal import AgentAnnotations, FenceRenewer, FenceSettings

CLUSTERS = Resource("cluster.x-k8s.io", "v1alpha4", "clusters", kind="Cluster")
SETTINGS = FenceSettings("me", lost_after=60.0, grace=30.0)


def answers(error):
    """The counted answers of one renewal that fails."""

    async def main(world):
        async def patch(*_, **__):
            raise error

        async def meta():
            return "m"

        renewer = FenceRenewer(SETTINGS, meta, clock=world.clock, metrics=world.metrics)
        health = types.SimpleNamespace(error="", listen=lambda _: lambda: None)
        cluster = types.SimpleNamespace(name="r1", client=types.SimpleNamespace(patch=patch), health=health)
        run = asyncio.create_task(renewer.run(cluster))
        await world.clock.sleep(1)
        run.cancel()
        await asyncio.wait([run])
        found = [line for line in world.metrics.text().splitlines() if line.startswith("hansa_fence_renewals_total{")]
        return [line.partition('answer="')[2].partition('"')[0] for line in found]

    return simulation.run(main)


@pytest.mark.parametrize(
    ("error", "answer"), [(errors.Forbidden("no"), "denied"), (TimeoutError(), "timeout"), (errors.Gone("no"), "gone")]
)
def test_a_failed_renewal_is_counted_by_its_answer(error, answer):
    assert answers(error) == [answer]


def test_a_fence_that_another_replica_renews_is_left_to_it():
    async def main(world):
        renewed, is_due = [], [True]

        async def patch(*_, **__):
            renewed.append(world.clock.now())
            return Object.of({"kind": "Lease", "metadata": {"name": "hansa-fence"}})

        async def meta():
            return "m"

        renewer = FenceRenewer(SETTINGS, meta, is_due=lambda _: is_due[0], clock=world.clock, metrics=world.metrics)
        health = types.SimpleNamespace(error="", listen=lambda _: lambda: None)
        cluster = types.SimpleNamespace(name="r1", client=types.SimpleNamespace(patch=patch), health=health)
        run = asyncio.create_task(renewer.run(cluster))
        await world.clock.sleep(15)
        is_due[0] = False
        await world.clock.sleep(60)
        run.cancel()
        await asyncio.wait([run])
        return renewed

    assert simulation.run(main) == [0.0, 10.0]


@pytest.mark.parametrize(("has_agent", "reason"), [(True, "AgentRunning"), (False, "AgentNotResponding")])
async def test_the_state_of_an_agent_is_annotated_and_reported(has_agent, reason):
    recorded = []

    async def patch(*_, **__):
        pass

    annotations = {} if has_agent else {"hansa.dev/agent": "true"}
    found = Object.of({"kind": "Cluster", "metadata": {"name": "r1", "uid": "u", "annotations": annotations}})
    recorder = types.SimpleNamespace(record=lambda _about, reason, _message, **_: recorded.append(reason))
    meta = types.SimpleNamespace(patch=patch)
    await AgentAnnotations(meta, CLUSTERS, lambda _: found, recorder=recorder).update("r1", has_agent)
    assert recorded == [reason]
