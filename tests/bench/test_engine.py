"""What a change costs the engine, with one upper cluster or with fifty over the same lower one: caches, no servers."""

import contextlib
import functools
import itertools
import time
import types
from dataclasses import replace

import pytest

import golden_files
from figures import figure
from hansa.control.store import Store
from hansa.engine.caches import ClusterCaches
from hansa.engine.registry import Route
from hansa.engine.shared_lower import SharedLower
from hansa.engine.view.references import ObjectRef
from hansa.engine.view.upper_view import UpperView
from hansa.engine.wakeups import Wakeups
from hansa.kube import resources, watching
from hansa.model import decision
from hansa.model.pair import Key
from hansa.runtime import clock, metrics
from tenants import a_pod

PODS, MANY, ROUNDS = 1000, 50, 7
MOST = 1.2
DOWN, UP = golden_files.VIRTUALCLUSTER, golden_files.SHARED


class Caches:
    """Sides as caches that are complete, and what was woken."""

    def __init__(self):
        self.clock, self.metrics = clock.SystemClock(), metrics.Registry()
        self.versions, self.woken = itertools.count(10), 0
        self.wakeups = Wakeups(self.wake)
        self.views, self.ways = {}, contextlib.ExitStack()

    def wake(self, key):
        self.woken += bool(self.views[key.cluster].placements.concerned(key))

    def changed(self, topic):
        if isinstance(topic, Key):
            self.wake(topic)
        self.wakeups.notify(topic)

    def side(self, name, mode):
        cluster = types.SimpleNamespace(name=name, health=types.SimpleNamespace(error=""))
        stores = {r: Store(f"{name} {r}", clock=self.clock, metrics=self.metrics) for r in mode.rules}
        for store in stores.values():
            store.apply(watching.Restarted())
            store.apply(watching.Synced("1"))
        return ClusterCaches(cluster, stores)

    def view(self, name, upper_id, mode):
        made = UpperView(self.side(name, mode), upper_id, mode, wakeups=self.wakeups, clock=self.clock)
        self.views[name] = made
        return made

    def put(self, side, obj):
        obj = obj.with_metadata(uid=f"uid-{obj.key}", resource_version=str(next(self.versions)))
        side.stores[resources.PODS].apply(watching.Modified(obj))
        return obj


def tenants(count):
    """A world with so many tenants over one super cluster, and a thousand pods among them: upper and lower ones."""
    world = Caches()
    lower = SharedLower(world.side("super", DOWN))
    lower.side.stores[resources.PODS].listen(world.changed, functools.partial(lower.topics, resources.PODS))
    for number in range(count):
        name = f"default-{number:06}-vc"
        settings = replace(golden_files.TENANT.settings, key=name, name=f"vc-{number}")
        world.ways.enter_context(
            lower.linked(world.view(name, f"id-{number}", DOWN), Route(name, "super", settings), world.changed)
        )
    pods = []
    for number, view in zip(range(PODS), itertools.cycle(world.views.values()), strict=False):
        upper = world.put(view.clusters.upper, a_pod(name=f"web-{number}"))
        key = Key(view.name, resources.PODS, *upper.key)
        view.placements.changed(ObjectRef(resources.PODS, upper.key))
        made = DOWN.desired(upper, key, view.snapshot(key).pair.links["super"])
        pods.append((view, key, world.put(lower.side, made.with_fields(status={"phase": "Pending"}))))
    return world, lower.side, pods


def turned(count):
    """The way up: the super cluster's pods as they are looked at for the nodes that so many tenants see."""
    world = Caches()
    view = world.view("super", "id-super", UP)
    view.clusters.upper.stores[resources.PODS].listen(
        lambda name: (view.placements.changed(name), world.changed(view.clusters.key(name))),
        lambda obj: (ObjectRef(resources.PODS, obj.key),),
    )
    for number in range(count):
        name = f"default-{number:06}-vc"
        view.attach(Route("super", name, replace(golden_files.TENANT.settings, key=name)), world.side(name, UP))
    pods = [a_pod(name=f"web-{number}").with_fields(status={"phase": "Pending"}) for number in range(PODS)]
    return world, view.clusters.upper, [(view, None, world.put(view.clusters.upper, pod)) for pod in pods]


def of_a_change(world, side, pods):
    """Seconds of CPU from a pod's new status in the super cluster to its key on the way to the queue."""
    news = [
        watching.Modified(
            pod.with_fields(status={"phase": "Running"}).with_metadata(resource_version=str(next(world.versions)))
        )
        for _, _, pod in pods
    ]
    cache, began = side.stores[resources.PODS], time.process_time()
    for one in news:
        cache.apply(one)
    return (time.process_time() - began) / len(news)


def of_a_look(_world, _side, pods):
    """Seconds of CPU for a decision with all that it reads."""
    began = time.process_time()
    for view, key, _ in pods:
        decision.decide(view.snapshot(key).pair, DOWN)
    return (time.process_time() - began) / len(pods)


@pytest.mark.parametrize(
    ("what", "world", "cost"),
    [
        ("a change below", tenants, of_a_change),
        ("a look", tenants, of_a_look),
        ("a change below, on the way up", turned, of_a_change),
    ],
)
async def test_the_cost_is_the_same_for_one_tenant_and_for_fifty(what, world, cost):
    few, many = world(1), world(MANY)
    # Turn by turn, and the best of each: what else runs on the machine only adds.
    pairs = [(cost(*few), cost(*many)) for _ in range(ROUNDS)]
    one, fifty = (1_000_000 * min(times) for times in zip(*pairs, strict=True))
    print(f"\n{what}: {one:.0f} µs with one tenant, {fifty:.0f} µs with {MANY}")
    figure(f"{MANY} tenants, times one", fifty / one, most=MOST)
