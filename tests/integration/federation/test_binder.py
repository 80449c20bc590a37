"""The binder on a real API server: candidates are written, withdrawn and retried. Views of targets are the test's."""

import contextlib
import secrets

import pytest

import engine_lab as lab
from eventually import eventually
from hansa.control.event_recorder import Recorder
from hansa.engine.cluster import Cluster
from hansa.federation.binder import Binder
from hansa.federation.target_views import TargetViews
from hansa.kube import resources
from hansa.model import keys
from proxies import a_proxy, a_target, a_virtual_node, unscheduled
from scheduling_things import a_node


class World:
    """A running binder, and what a test does to its pods and targets."""

    def __init__(self, client, namespace, names):
        self.client, self.namespace, self.views = client, namespace, TargetViews()
        self.one, self.two = names

    def target(self, name, cpu="4", **changes):
        node = a_node(f"{name}-0", cpu=cpu)
        self.views.update(a_target(name, node, namespace=self.namespace, version=secrets.token_hex(4), **changes))

    async def proxy(self, name, **changes):
        pod = a_proxy(name, namespace=self.namespace, **changes)
        return await self.client.create(resources.PODS, pod.with_metadata(uid=""))

    async def refuse(self, name, message):
        patch = {"status": {"conditions": [unscheduled(message)]}}
        await self.client.patch(resources.PODS, name, patch, namespace=self.namespace, subresource="status")

    async def candidate(self, name):
        return (await self.client.get(resources.PODS, name, namespace=self.namespace)).annotations.get(keys.CANDIDATE)

    async def is_placed(self, name, *targets):
        async def look():
            return await self.candidate(name) in (targets or (self.one, self.two))

        await eventually(look, within=60)

    async def event(self, name, text):
        async def look():
            fields = f"involvedObject.name={name},reason=FailedScheduling"
            page = await self.client.list(resources.EVENTS, namespace=self.namespace, fields=fields)
            return [one for one in page.items if text in one.get("message", "")]

        return await eventually(look, within=60)


@pytest.fixture
async def world(cluster, client, namespace):
    injected = lab.Engine()
    names = [f"vn-{secrets.token_hex(3)}-{number}" for number in (1, 2)]
    for name in names:
        node = a_virtual_node(name)
        await client.create(resources.NODES, node)
        await client.patch(resources.NODES, name, {"status": node.status}, subresource="status")
    async with cluster.client("hansa-binder") as own:
        upper = Cluster("upper", own, supervisor=injected.supervisor, watch_patience=lab.QUICK, **injected.injected())
        recorder = Recorder("hansa-agent", own, **injected.injected())
        world = World(client, namespace, names)
        binder = Binder(world.views, upper, recorder=recorder, **injected.injected())
        injected.supervisor.start("events", recorder.run)
        running = injected.supervisor.start("binder", binder.run)
        yield world
        binder.drain()
        await running
        await injected.supervisor.close()
        await upper.close()
    for name in names:
        await client.delete(resources.NODES, name)


async def test_pods_get_targets_with_free_resources_and_the_others_an_event(world):
    world.target(world.one, cpu="2")
    world.target(world.two, cpu="1")
    for number in range(3):
        await world.proxy(f"p{number}")
    for number in range(3):
        await world.is_placed(f"p{number}")
    places = [await world.candidate(f"p{number}") for number in range(3)]
    assert (places.count(world.one), places.count(world.two)) == (2, 1)
    await world.proxy("late")
    [event] = await world.event("late", "Insufficient cpu")
    assert event.get("message").count("Insufficient cpu") == 2
    world.target(world.two, cpu="2")  # the pods with reservations count until they are bound and settled
    await world.is_placed("late", world.two)


async def test_a_pod_that_its_target_does_not_take_is_placed_elsewhere(world):
    world.target(world.one)
    await world.proxy("web")
    await world.is_placed("web", world.one)
    await world.refuse("web", f"{world.one}: exceeded quota: pods")
    await world.event("web", "exceeded quota: pods")
    assert await world.candidate("web") == world.one
    world.target(world.two)
    await world.is_placed("web", world.two)
    await world.refuse("web", f"{world.two}: 0/1 nodes are available")
    await world.event("web", "0/1 nodes are available")
    await world.client.delete(resources.PODS, "web", namespace=world.namespace, grace=0)


async def test_gated_pods_wait_and_an_unreadable_one_gets_an_event(world):
    world.target(world.one)
    await world.proxy("gated", proxy={"schedulingGates": [{"name": "example.com/queue"}]})
    await world.proxy("broken", annotations={keys.SOURCE_POD: "{"})
    await world.event("broken", keys.SOURCE_POD)
    assert await world.candidate("gated") is None
    await world.client.patch(resources.PODS, "gated", {"spec": {"schedulingGates": None}}, namespace=world.namespace)
    await world.is_placed("gated", world.one)


async def test_a_removed_target_loses_its_pods_that_wait(world):
    world.target(world.one)
    await world.proxy("web")
    await world.is_placed("web", world.one)
    world.target(world.two)
    world.views.remove(world.one)
    await world.is_placed("web", world.two)
    with contextlib.suppress(Exception):
        await world.client.delete(resources.PODS, "web", namespace=world.namespace, grace=0)


async def test_a_candidate_that_a_user_wrote_is_no_way_into_the_target_of_another_namespace(world):
    world.views.update(a_target(world.one, a_node("n"), namespace="another", version="1"))
    proxy = a_proxy("forged", namespace=world.namespace, annotations={keys.CANDIDATE: world.one})
    await world.client.create(resources.PODS, proxy.with_metadata(uid=""))
    await world.event("forged", "has no targets")
    world.target(world.two)
    await world.is_placed("forged", world.two)
