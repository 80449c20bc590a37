"""Objects that wait because a limit is reached, and go when there is room."""

from dataclasses import replace

import engine_lab as lab
import simulation
from hansa.engine.registry import Route
from hansa.kube.objects import Object
from hansa.model import plan
from hansa.model.limits import Limit, Limits
from hansa.model.pair import Key
from view_world import MAPS, PODS, World

EVERYWHERE = {"a", "b", "c", "d"}


def limited(**most):
    """A mode with ConfigMaps everywhere, within limits."""
    rule = replace(lab.SMALL.rules[MAPS], placement=lambda *_: {"low": 2}, unused_last=True)
    rules = {**lab.SMALL.rules, MAPS: rule}
    return replace(lab.SMALL, rules=rules, limits_of=lambda _link: Limits(**most))


def a_map(name, size=100):
    return Object.of(
        {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": "x" * size}}
    )


def key(name):
    return Key("up", MAPS, "default", name)


def made(world, name):
    """Reconcile a ConfigMap, and put the copy that is created into the cache; what waits, if anything."""
    world.woken.clear()
    _, actions = world.decide(key(name))
    for action in actions:
        if isinstance(action, plan.Create):
            world.put(world.lower, MAPS, action.obj)
            return None
    return next((one for one in actions if isinstance(one, plan.OverLimit)), None)


def gone(world, name):
    """The copy of a ConfigMap is gone."""
    copy = next(one for one in world.lower.stores[MAPS].values() if one.name == name)
    world.lower.stores[MAPS].observe_gone(copy.key, copy.uid)
    world.woken.clear()
    world.view.usage.copies_changed()


def play(scene, **most):
    async def main(outer):
        changed = []
        world = World(outer, limited(**most))
        world.view.usage._changed = lambda: changed.append(True)
        for name in sorted(EVERYWHERE):
            world.put(world.upper, MAPS, a_map(name))
        scene(world, changed)

    simulation.run(main)


def test_an_object_over_a_limit_waits_until_a_copy_is_gone():
    def scene(world, changed):
        assert [made(world, name) for name in "abc"] == [None] * 3
        assert made(world, "d").limit is Limit.OBJECTS
        assert changed == [True]
        [full] = world.view.usage.full()
        assert (full.used, full.most, full.waiting, full.kinds) == (3, 3, 1, ((str(MAPS), 3),))
        gone(world, "a")
        assert world.woken == [key("d")]
        assert made(world, "d") is None
        assert (changed, world.view.usage.full()) == ([True, True], [])

    play(scene, objects=3)


def test_objects_in_use_go_before_others():
    def scene(world, _changed):
        assert [made(world, name) for name in "ab"] == [None] * 2
        for name in "cd":
            assert made(world, name) is not None
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="d"))
        assert made(world, "d") is not None
        gone(world, "a")
        assert world.woken == [key("d")]

    play(scene, objects=2)


def test_an_object_that_is_gone_waits_no_more():
    def scene(world, changed):
        assert made(world, "a") is not None
        world.view.forget(key("a"))
        assert (changed, world.view.usage.full()) == ([True, True], [])

    play(scene, objects=0)


def test_copies_that_are_being_created_count():
    def scene(world, _changed):
        snapshot = world.view.snapshot(key("a"))
        create = plan.Create("low", a_map("a"), plan.Reason.PLACED)
        with world.view.usage.writing((create,), MAPS):
            assert made(world, "b") is not None
        assert snapshot.pair.room["low"].used.objects == 0
        assert made(world, "b") is None

    play(scene, objects=1, bytes=1000)


def test_a_copy_that_would_grow_over_a_limit_is_not_changed():
    def scene(world, _changed):
        assert made(world, "a") is None
        world.put(world.upper, MAPS, a_map("a", size=2000))
        assert made(world, "a").limit is Limit.BYTES

    play(scene, bytes=1000)


def test_without_limits_nothing_is_counted():
    async def main(outer):
        world = World(outer)
        world.view.attach(Route("up", "low", nodes=frozenset({"vn"})), world.lower)
        assert world.view.usage.room("low", is_used=True) is None

    simulation.run(main)


def test_an_object_that_is_not_cached_whole_is_not_decided_and_keeps_its_references():
    async def main(outer):
        world = World(outer)
        world.put(world.upper, MAPS, a_map("settings"))
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        assert world.view.placements.users(key("settings")) == {"low"}
        world.put(world.upper, PODS, pod.outlined())
        assert world.view.placements.users(key("settings")) == {"low"}
        _, actions = world.decide(Key("up", PODS, *pod.key))
        assert [type(one) for one in actions] == [plan.Wait]

    simulation.run(main)
