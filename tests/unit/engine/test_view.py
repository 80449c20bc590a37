"""Pairs from caches: what is unknown, what is waited for, what needs no second look."""

from dataclasses import replace

import engine_lab as lab
import simulation
from hansa.engine import crowding
from hansa.engine.references import Name
from hansa.engine.registry import Route
from hansa.engine.view import Spot
from hansa.kube import resources, watching
from hansa.kube.objects import Key as Place
from hansa.model import placement, plan
from hansa.model.lifecycle import NAMESPACE, Lifecycle
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Unknown
from hansa.model.translation.tenant import pod as tenant_pod
from view_world import MAP, MAPS, NAMESPACES, NOW, POD, PODS, World


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


def test_room_in_a_full_queue_is_for_whoever_waits_longest(play):
    def scene(world):
        def pod(number):
            world.put(world.upper, PODS, lab.pod(f"p{number}", "vn"))
            return Key("up", PODS, "default", f"p{number}")

        for number in range(crowding.MOST):
            _, [made] = world.decide(pod(number))
            world.put(world.lower, PODS, made.obj)
        late = [pod("gone"), pod("late"), pod("later")]
        for key in late:
            _, [action] = world.decide(key)
            assert action == plan.Wait("as many of up as may wait in low at once")
        store = world.upper.stores[PODS]
        store.apply(watching.Deleted(store.get(Place("default", "pgone"))))
        world.woken.clear()
        world.view.let_in(PODS)
        assert world.woken == []
        bound = world.lower.stores[PODS].get(Place("default", "p3"))
        world.put(world.lower, PODS, bound.with_fields(spec={**bound.spec, "nodeName": "n"}))
        with world.view.coming(PODS, ["low"]):
            world.view.let_in(PODS)
        assert world.woken == []
        world.view.let_in(PODS)
        assert world.woken == [late[1]]
        for key in (late[2], pod("newcomer")):
            assert isinstance(world.decide(key)[1][0], plan.Wait)
        assert isinstance(world.decide(late[1])[1][0], plan.Create)
        world.put(world.upper, PODS, lab.pod("plater", "vn"), deletion_timestamp=NOW)
        world.decide(late[2])
        world.view.let_in(PODS)
        assert world.woken == [late[1], Key("up", PODS, "default", "pnewcomer")]

    queueing = replace(lab.SMALL.rules[PODS], queues=tenant_pod.unscheduled)
    play(scene, mode=replace(lab.SMALL, rules={**lab.SMALL.rules, PODS: queueing}))


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
