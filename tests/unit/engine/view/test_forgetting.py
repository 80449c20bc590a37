"""Objects that come and go leave nothing behind: neither what their keys waited for, nor what was computed."""

import dataclasses

import engine_lab as lab
import retained
from hansa.engine.view.topics import ObjectRef
from hansa.kube import resources, watching
from hansa.kube.objects import NamespacedName
from hansa.model import plan
from hansa.model.pair import Key
from hansa.model.references import Missing, Reference
from view_world import MAP, MAPS, PODS

RULE = lab.SMALL.rules[PODS]


def _optional(pod):
    return [Reference(MAPS, one.namespace, one.name, True, missing=Missing.PLACEHOLDER) for one in RULE.references(pod)]


OPTIONAL = dataclasses.replace(
    lab.SMALL, rules={**lab.SMALL.rules, PODS: dataclasses.replace(RULE, references=_optional)}
)


def _gone(world, side, resource, name):
    store = side.stores[resource]
    store.apply(watching.Deleted(store.get(NamespacedName("default", name))))
    if side is world.upper:
        world.view.placements.changed(ObjectRef(resource, NamespacedName("default", name)))


def _live(world, number):
    """A pod that names a ConfigMap which nobody creates, from its creation to its end."""
    key = Key("up", PODS, "default", f"p{number}")
    world.put(world.upper, PODS, lab.pod(key.name, "vn", config_map="settings"))
    _, [action] = world.decide(key)
    assert isinstance(action, plan.Wait)
    _, [made] = world.decide(MAP)
    world.put(world.lower, MAPS, made.obj)
    world.wakeups.notify(MAP)
    _, [made] = world.decide(key)
    world.put(world.lower, PODS, made.obj)
    world.decide(key)
    _gone(world, world.upper, PODS, key.name)
    _, [delete] = world.decide(key)
    assert isinstance(delete, plan.Delete)
    _gone(world, world.lower, PODS, key.name)
    world.decide(MAP)
    _gone(world, world.lower, MAPS, "settings")
    assert world.view.placements.concerned(key) == []
    world.view.forget(key)
    world.view.forget(MAP)
    world.woken.clear()


def test_rounds_of_pods_with_a_missing_optional_reference_leave_nothing(play):
    def scene(world):
        _live(world, 0)
        before = retained.entries(world)
        for number in range(1, 30):
            _live(world, number)
        assert retained.growth(before, retained.entries(world)) == {}
        assert len(world.wakeups) == 0

    play(scene, mode=OPTIONAL)


def test_an_object_that_concerns_no_cluster_any_more_waits_for_nothing(play):
    def scene(world):
        _live(world, 0)
        before = retained.entries(world)
        for name in ("a", "b"):
            key = Key("up", PODS, "default", name)
            world.put(world.upper, PODS, lab.pod(name, "vn", config_map="settings"))
            world.decide(key)
            assert len(world.wakeups) == 1
            _gone(world, world.upper, PODS, name)
            world.view.forget(key)
        world.woken.clear()
        assert retained.growth(before, retained.entries(world)) == {}

    play(scene, mode=OPTIONAL)


def test_forgetting_covers_every_kind(play):
    def scene(world):
        for resource in (*lab.SMALL.rules, resources.NODES):
            world.view.forget(Key("up", resource, "default", "unknown"))

    play(scene)
