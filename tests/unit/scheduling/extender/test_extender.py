"""The extender between kube-scheduler's calls and the events of pods; its lower cluster is a view without a watch."""

import asyncio

import pytest

from hansa.control.store import Store
from hansa.kube import errors, watching
from hansa.kube.objects import NamespacedName
from hansa.runtime import clock, metrics
from hansa.scheduling import pod_request
from hansa.scheduling.extender import extender, waiting
from hansa.scheduling.extender.messages import Binding, Candidates
from scheduling_things import a_node, a_pod, a_view

VIRTUAL = "vn-r1"


class Lower:
    """A cluster with one node of 4 CPUs."""

    name = "r1"

    def __init__(self):
        self.view = a_view(a_node("n1"))

    def knows(self, key):
        return key in self.view.reservations

    def reserve(self, key, request, node):
        self.view = self.view.reserving(key, request, node=node, until=60.0)

    def release(self, key):
        self.view = self.view.without_pod(key)


class Calls:
    """What a binding meets on its way."""

    def __init__(self):
        self.meanwhile, self.error = lambda: None, None

    async def call(self, *_, **__):
        self.meanwhile()
        if self.error:
            raise self.error


class World:
    def __init__(self):
        parts = {"clock": clock.SystemClock(), "metrics": metrics.Registry()}
        self.nodes, self.pods, self.lower, self.client = Store("n", **parts), Store("p", **parts), Lower(), Calls()
        self.extender = extender.Extender(
            self.client,
            {"r1": self.lower},
            nodes=self.nodes,
            pods=self.pods,
            lower_of=lambda node: node.labels.get("clusterID", ""),
            request_of=lambda pod, _: pod_request.of_pod(pod),
            waiting=waiting.Waiting(self.client, clock=parts["clock"]),
        )
        for store in (self.nodes, self.pods):
            store.apply(watching.Restarted())
            store.apply(watching.Synced("1"))
        self.version = 1
        self.put(self.nodes, a_node(VIRTUAL, labels={"clusterID": "r1"}))

    def put(self, store, obj):
        self.version += 1
        obj = obj.with_metadata(uid=f"{obj.name}-uid", resource_version=str(self.version))
        store.apply(watching.Added(obj))
        return obj

    def see(self, name, **spec):
        """An event of a pod, and the pod."""
        pod = self.put(self.pods, a_pod(name, cpu="3", **spec))
        self.extender.observe(pod.key)
        return pod

    def passes(self, pod):
        return self.extender.filter(Candidates(pod, [VIRTUAL])).node_names == [VIRTUAL]

    async def bind(self, pod):
        return (await self.extender.bind(Binding(pod.name, pod.namespace, pod.uid, VIRTUAL))).error


@pytest.fixture
def world():
    return World()


async def test_an_older_event_of_a_pod_does_not_release_the_room_of_its_binding(world):
    first, second = world.see("first"), world.see("second")
    assert world.passes(first)
    world.client.meanwhile = lambda: world.see("first")  # its condition was written before the binding
    assert await world.bind(first) == ""
    assert not world.passes(second)
    world.see("first")
    assert not world.passes(second)
    world.see("first", on=VIRTUAL)
    assert not world.passes(second), "until its copy is bound below"


async def test_the_room_of_a_binding_that_fails_is_free_again(world):
    first, second = world.see("first"), world.see("second")
    assert world.passes(first)
    world.client.error = errors.Conflict("it was bound by another scheduler")
    assert "another scheduler" in await world.bind(first)
    assert world.passes(second)


async def test_the_room_of_a_pod_that_is_deleted_during_its_binding_is_free_again(world):
    first, second = world.see("first"), world.see("second")
    assert world.passes(first)
    assert await world.bind(first) == ""
    world.pods.apply(watching.Deleted(first))
    world.extender.observe(first.key)
    assert world.passes(second)


async def test_of_pods_that_passed_at_the_same_time_only_as_many_are_bound_as_fit(world):
    pods = [world.see(f"p{number}") for number in range(5)]
    assert all(map(world.passes, pods))
    answers = await asyncio.gather(*map(world.bind, pods))
    assert sorted(map(bool, answers)) == [False, True, True, True, True]
    assert "the room was given to another pod" in max(answers)


async def test_a_pod_that_this_process_did_not_filter_is_tried_again(world):
    assert "kube-scheduler tries again" in await world.bind(world.see("p"))
    assert len(world.lower.view.reservations) == 0


async def test_ordinary_nodes_are_not_judged(world):
    pod = world.see("p")
    world.put(world.nodes, a_node("plain"))
    assert world.extender.filter(Candidates(pod, ["plain", "unknown"])).node_names == ["plain", "unknown"]
    assert {one.score for one in world.extender.prioritize(Candidates(pod, ["plain"]))} == {extender.ORDINARY}
    assert NamespacedName("shop", "p") not in world.lower.view.reservations
