"""Pairs from caches: what is unknown, what is waited for, what needs no second look."""

import types

import pytest

import engine_lab as lab
import simulation
from hansa.control.store import Store
from hansa.engine.references import Name
from hansa.engine.side import Side
from hansa.engine.view import Spot, View
from hansa.engine.waiting import Waiting
from hansa.kube import resources, watching
from hansa.kube.objects import Key as Place
from hansa.model import decision, plan
from hansa.model.pair import Key, Link, Unknown

PODS, MAPS = resources.PODS, resources.CONFIG_MAPS


class World:
    """An upper and a lower cluster as caches, without servers."""

    def __init__(self, outer):
        self.outer, self.woken, self.version = outer, [], 0
        self.waiting = Waiting(self.woken.append)
        self.upper, self.lower = self.side("up"), self.side("low")
        self.view = View(self.upper, "id", lab.SMALL, waiting=self.waiting)
        self.view.attach(Link("up", "id", "low"), self.lower, frozenset({"vn"}))

    def side(self, name):
        cluster = types.SimpleNamespace(name=name, health=types.SimpleNamespace(trouble=""))
        stores = {r: Store(f"{name} {r}", clock=self.outer.clock, metrics=self.outer.metrics) for r in lab.SMALL.rules}
        for store in stores.values():
            store.apply(watching.Restarted())
            store.apply(watching.Synced("1"))
        return Side(cluster, stores)

    def put(self, side, resource, obj, **metadata):
        self.version += 10
        obj = obj.with_metadata(uid=f"{obj.name}-uid", resource_version=str(self.version), **metadata)
        side.stores[resource].apply(watching.Added(obj))
        if side is self.upper:
            self.view.look(Name(resource, obj.key))
        return obj

    def decide(self, key):
        pair = self.view.snapshot(key)
        return pair, decision.decide(pair, lab.SMALL).actions


POD, MAP = Key("up", PODS, "default", "p"), Key("up", MAPS, "default", "settings")


@pytest.fixture
def play():
    """Runs a function with a world, on simulated time."""

    def run(scene):
        async def main(outer):
            scene(World(outer))

        simulation.run(main)

    return run


def test_a_pod_waits_for_what_it_refers_to_and_is_woken_by_it(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("configmaps default/settings is not in low yet")
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        world.waiting.come(MAP)
        assert POD in world.woken
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene)


def test_what_does_not_exist_above_is_not_waited_for(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene)


def test_a_copy_of_a_former_life_is_not_what_a_pod_waits_for(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        old = made.obj.with_metadata(annotations={**made.obj.annotations, "hansa.dev/upper-uid": "former"})
        world.put(world.lower, MAPS, old)
        _, [action] = world.decide(POD)
        assert isinstance(action, plan.Wait)

    play(scene)


def test_a_cluster_in_trouble_is_unknown_and_wakes_who_asked_when_it_is_back(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.lower.cluster.health.trouble = "it does not answer"
        world.lower.look()
        pair, [action] = world.decide(POD)
        assert pair.lowers["low"] == Unknown("it does not answer")
        assert action == plan.Wait("low cannot be seen: it does not answer")
        world.woken.clear()
        world.waiting.come("low")
        assert world.woken == [POD]
        world.upper.cluster.health.trouble = "gone"
        world.upper.look()
        assert isinstance(world.view.snapshot(POD).upper, Unknown)

    play(scene)


def test_copies_cannot_be_told_while_no_cluster_that_needs_them_is_seen(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.lower.cluster.health.trouble = "it has not answered yet"
        world.lower.look()
        assert world.view.copies(MAP) is None
        world.lower.cluster.health.trouble = ""
        world.lower.look()
        assert world.view.copies(MAP) == []

    play(scene)


def test_a_cluster_in_trouble_does_not_matter_to_those_who_never_were_there(play):
    def scene(world):
        world.view.attach(Link("up", "id", "other"), world.side("other"), frozenset({"vn2"}))
        world.put(world.upper, PODS, lab.pod("p", "vn2"))
        world.lower.cluster.health.trouble = "it does not answer"
        world.lower.look()
        pair, [action] = world.decide(POD)
        assert set(pair.lowers) == {"other"}
        assert isinstance(action, plan.Create)
        assert world.view.concerned(POD) == ["other"]

    play(scene)


def test_a_pair_that_was_in_order_is_settled_until_one_side_changes(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        lower = world.put(world.lower, MAPS, made.obj)
        pair, actions = world.decide(MAP)
        assert (pair.settled, actions) == (frozenset(), ())
        world.view.settle(pair, unsettled=frozenset())
        pair, _ = world.decide(MAP)
        assert pair.settled == {"low"}
        world.put(world.lower, MAPS, lower.with_fields(data={"changed": "below"}))
        pair, [action] = world.decide(MAP)
        assert pair.settled == frozenset()
        assert isinstance(action, plan.Patch)

    play(scene)


def test_a_place_that_somebody_else_has_wakes_us_when_it_is_free(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        foreign = world.put(world.lower, PODS, lab.pod("p", "node"))
        _, [action] = world.decide(POD)
        assert isinstance(action, plan.Conflict)
        [topic] = world.view.topics("low", PODS, foreign)
        assert topic == Spot("low", PODS, Place("default", "p"))
        world.woken.clear()
        world.waiting.come(topic)
        assert world.woken == [POD]

    play(scene)


def test_the_audit_sees_what_is_above_and_what_of_ours_is_below(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        world.put(world.lower, PODS, lab.pod("theirs", "node"))
        orphan = made.obj.with_metadata(
            name="orphan", annotations={**made.obj.annotations, "hansa.dev/upper-name": "default/orphan"}
        )
        world.put(world.lower, MAPS, orphan)
        assert set(world.view) == {MAP, POD, MAP._replace(name="orphan")}

    play(scene)


def test_a_lower_cluster_that_leaves_is_forgotten(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.view.detach("low")
        assert POD in world.woken
        pair, actions = world.decide(POD)
        assert (pair.lowers, actions) == ({}, ())

    play(scene)
