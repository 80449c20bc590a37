"""Pairs from caches: what is unknown, what is waited for, what needs no second look."""

import dataclasses
import datetime
import types

import pytest

import engine_lab as lab
import simulation
from hansa.control.store import Store
from hansa.engine.references import Name
from hansa.engine.registry import Route
from hansa.engine.side import Side
from hansa.engine.view import Spot, View
from hansa.engine.waiting import Waiting
from hansa.kube import resources, watching
from hansa.kube.objects import Key as Place
from hansa.model import decision, placement, plan
from hansa.model.lifecycle import NAMESPACE, Lifecycle
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Unknown
from hansa.model.references import Missing, Reference

PODS, MAPS, NAMESPACES = resources.PODS, resources.CONFIG_MAPS, resources.NAMESPACES
NOW = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)


class World:
    """An upper and a lower cluster as caches, without servers."""

    def __init__(self, outer, mode=lab.SMALL):
        self.outer, self.mode, self.woken, self.version = outer, mode, [], 0
        self.waiting = Waiting(self.woken.append)
        self.upper, self.lower = self.side("up"), self.side("low")
        self.view = View(self.upper, "id", mode, waiting=self.waiting, clock=outer.clock)
        self.view.attach(Route("up", "low", nodes=frozenset({"vn"})), self.lower)

    def side(self, name):
        cluster = types.SimpleNamespace(name=name, health=types.SimpleNamespace(trouble=""))
        stores = {r: Store(f"{name} {r}", clock=self.outer.clock, metrics=self.outer.metrics) for r in self.mode.rules}
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
        return pair, decision.decide(pair, self.mode).actions


POD, MAP = Key("up", PODS, "default", "p"), Key("up", MAPS, "default", "settings")
MAP_PLACE = Place("default", "settings")


@pytest.fixture
def play():
    """Runs a function with a world, on simulated time."""

    def run(scene, **options):
        async def main(outer):
            scene(World(outer, **options))

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


def reading(missing):
    """Pods that read ConfigMaps of their own cluster only."""
    rule = lab.SMALL.rules[PODS]

    def references(pod):
        return [Reference(MAPS, one.namespace, one.name, missing=missing) for one in rule.references(pod)]

    return dataclasses.replace(
        lab.SMALL, rules={**lab.SMALL.rules, PODS: dataclasses.replace(rule, references=references)}
    )


def test_what_has_to_be_there_above_is_waited_for_and_soon_told(play):
    def scene(world):
        now = world.outer.clock.wall()
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"), creation_timestamp=now)
        sentence = "configmaps default/settings is not there, and has to be before it can run"
        _, [action] = world.decide(POD)
        assert action == plan.Wait(sentence, seconds=2.0)
        old = now - datetime.timedelta(seconds=2)
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"), creation_timestamp=old)
        _, [action] = world.decide(POD)
        assert action == plan.Refuse("low", sentence)
        assert world.waiting.keys(MAP) == [POD]
        world.put(world.upper, MAPS, lab.config_map("settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene, mode=reading(Missing.AWAITED))


def test_something_empty_of_ours_keeps_the_name_of_what_may_be_missing_while_it_is_used(play):
    def scene(world):
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("configmaps default/settings is not in low yet")
        _, [made] = world.decide(MAP)
        assert (made.obj.key, made.obj.get("data")) == (Place("default", "settings"), None)
        empty = world.put(world.lower, MAPS, made.obj)
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)
        assert world.decide(MAP)[1] == ()
        # What comes later takes the place of it.
        world.put(world.upper, MAPS, lab.config_map("settings"))
        _, [action] = world.decide(MAP)
        assert (type(action), action.obj) == (plan.Delete, empty)
        world.upper.stores[MAPS].apply(watching.Deleted(world.upper.stores[MAPS].get(MAP_PLACE)))
        assert world.decide(MAP)[1] == ()
        world.upper.stores[PODS].apply(watching.Deleted(pod))
        world.view.look(Name(PODS, pod.key))
        assert world.woken[-1] == MAP
        _, [action] = world.decide(MAP)
        assert (type(action), action.obj) == (plan.Delete, empty)

    play(scene, mode=reading(Missing.KEPT_FREE))


def test_a_copy_stays_while_a_pod_below_reads_it_and_goes_with_the_pod(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.put(world.lower, MAPS, world.decide(MAP)[1][0].obj)
        made = world.decide(POD)[1][0].obj
        world.upper.stores[MAPS].apply(watching.Deleted(world.upper.stores[MAPS].get(MAP_PLACE)))
        [action] = world.decide(MAP)[1]
        assert isinstance(action, plan.Delete), "the pod is not below yet, and waits"
        world.put(world.lower, PODS, made)
        assert world.decide(MAP)[1] == (plan.Wait("others in low read it yet"),)
        world.upper.stores[PODS].apply(watching.Deleted(pod))
        world.view.look(Name(PODS, pod.key))
        assert world.woken[-1] == MAP
        [action] = world.decide(MAP)[1]
        assert isinstance(action, plan.Delete)

    play(scene, mode=reading(Missing.AWAITED))


def test_a_name_that_a_stranger_has_is_waited_for(play):
    def scene(world):
        world.put(world.lower, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("configmaps default/settings is not in low yet")
        _, [action] = world.decide(MAP)
        assert isinstance(action, plan.Conflict)

    play(scene, mode=reading(Missing.KEPT_FREE))


def test_a_copy_goes_where_its_upper_object_is_gone_leaves_or_is_another(play):
    def scene(world):
        for name in ("stays", "gone", "leaves", "other"):
            world.put(world.upper, MAPS, lab.config_map(name))
            world.put(world.upper, PODS, lab.pod(name, "vn", config_map=name))
            _, [made] = world.decide(Key("up", MAPS, "default", name))
            world.put(world.lower, MAPS, made.obj)
        store = world.upper.stores[MAPS]
        store.apply(watching.Deleted(store.get(Place("default", "gone"))))
        world.put(world.upper, MAPS, lab.config_map("leaves"), deletion_timestamp=NOW)
        store.apply(
            watching.Modified(store.get(Place("default", "other")).with_metadata(uid="x", resource_version="999"))
        )
        assert {one.name for one in world.view.going(MAPS, "low")} == {"gone", "leaves", "other"}
        assert list(world.view.going(MAPS, "up")) == []

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
        world.view.attach(Route("up", "other", nodes=frozenset({"vn2"})), world.side("other"))
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
        assert sorted(world.view, key=str) == [MAP._replace(name="orphan"), MAP, POD], "each once"

    play(scene)


def test_a_lower_cluster_that_leaves_is_forgotten(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.view.detach("low")
        assert POD in world.woken
        pair, actions = world.decide(POD)
        assert (pair.lowers, actions) == ({}, ())

    play(scene)


ROOMED = Mode(
    name="roomed",
    rules={**lab.SMALL.rules, NAMESPACES: Rule(NAMESPACES, placement=placement.everywhere, lifecycle=NAMESPACE)},
    lower_place=lambda key, _: Place(
        key.namespace and f"x-{key.namespace}", key.name if key.namespace else f"x-{key.name}"
    ),
)
ROOM = Key("up", NAMESPACES, "", "default")


def test_where_namespaces_travel_all_else_waits_for_its_namespace(play):
    def scene(world):
        world.put(world.upper, NAMESPACES, lab.namespace("default"))
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("namespaces default is not in low yet")
        _, [made] = world.decide(ROOM)
        assert made.obj.name == "x-default"
        room = world.put(world.lower, NAMESPACES, made.obj)
        world.waiting.come(ROOM)
        assert POD in world.woken
        _, [made] = world.decide(POD)
        assert made.obj.key == Place("x-default", "p")
        world.put(world.lower, NAMESPACES, room, deletion_timestamp=NOW)
        _, [action] = world.decide(POD)
        assert isinstance(action, plan.Wait), "nothing can be made in a namespace that leaves"

    play(scene, mode=ROOMED)


def test_steps_find_what_else_is_known_along_a_link(play):
    def scene(world):
        near = world.view.links["low"].around
        settings = world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, MAPS, lab.config_map("elsewhere", namespace="other"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        assert near.upper(MAPS, settings.key) == settings
        assert near.lower(MAPS, settings.key) is None
        assert list(near.uppers(MAPS, "default")) == [settings]
        _, [made] = world.decide(MAP)
        copy = world.put(world.lower, MAPS, made.obj)
        assert near.lower(MAPS, settings.key) == copy
        world.put(world.lower, PODS, lab.pod("p", "node"))
        assert near.lower(PODS, Place("default", "p")) is None, "it is somebody else's"
        assert near.upper(resources.NODES, Place("", "n")) is None
        assert list(near.uppers(resources.NODES, "")) == []

    play(scene)


LINGERING = Mode(
    name="lingering",
    rules={**lab.SMALL.rules, MAPS: Rule(MAPS, placement=placement.with_users, lifecycle=Lifecycle(lingers=120))},
)


def test_a_copy_that_lingers_goes_when_nobody_needed_it_for_so_long():
    async def main(outer):
        world = World(outer, LINGERING)
        world.put(world.upper, MAPS, lab.config_map("settings"))
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        assert world.decide(MAP)[1] == ()

        async def passes(seconds):
            await outer.clock.sleep(seconds)
            return world.decide(MAP)[1]

        def take(pod):
            world.upper.stores[PODS].apply(watching.Deleted(pod.with_metadata(resource_version="9999")))
            world.view.look(Name(PODS, pod.key))

        take(pod)
        assert await passes(0) == (plan.Wait("it may be needed in low again", seconds=120),)
        assert await passes(100) == (plan.Wait("it may be needed in low again", seconds=20),)
        again = world.put(world.upper, PODS, pod.with_metadata(name="p2"))
        assert await passes(10) == ()
        take(again)
        assert await passes(100) == (plan.Wait("it may be needed in low again", seconds=120),)
        [gone] = await passes(121)
        assert isinstance(gone, plan.Delete)
        world.lower.stores[MAPS].apply(watching.Deleted(gone.obj.with_metadata(resource_version="9999")))
        assert await passes(0) == ()
        world.put(world.lower, MAPS, made.obj)
        assert await passes(0) == (plan.Wait("it may be needed in low again", seconds=120),), "it begins anew"

    simulation.run(main)


POOLED = Mode(
    name="pooled",
    rules={
        **lab.SMALL.rules,
        NAMESPACES: Rule(NAMESPACES, placement=placement.by_annotation("where", str.split), lifecycle=NAMESPACE),
        MAPS: Rule(MAPS, placement=placement.with_namespace, goes_with_namespace=True),
    },
)


def test_what_goes_with_its_namespace_is_looked_at_when_that_should_be_elsewhere(play):
    def scene(world):
        world.view.attach(Route("up", "other"), world.side("other"))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, MAPS, lab.config_map("far", namespace="far"))
        assert world.view.concerned(MAP) == []

        def placed(where):
            world.woken.clear()
            world.put(world.upper, NAMESPACES, lab.namespace("default", annotations={"where": where, "note": where}))
            return world.view.concerned(MAP)

        assert placed("low") == ["low"]
        assert world.woken == [MAP]
        assert placed("low other") == ["low", "other"]
        _, actions = world.decide(MAP)
        assert [action.reason for action in actions] == [
            "namespaces default is not in low yet",
            "namespaces default is not in other yet",
        ]
        assert placed("low  other") == ["low", "other"]
        assert world.woken == [], "it is where it was"
        assert placed("") == []
        assert world.woken == [MAP]

    play(scene, mode=POOLED)
