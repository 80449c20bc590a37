"""Pairs from caches: unknown sides, waits, and pairs that need no second reconcile."""

from dataclasses import replace

import pytest

import engine_lab as lab
import simulation
from hansa.engine.registry import Route
from hansa.engine.view import pending_limit
from hansa.engine.view.topics import LowerName, ObjectRef
from hansa.kube import watching
from hansa.kube.objects import NamespacedName
from hansa.model import lifecycle, lookups, placement, plan
from hansa.model.lifecycle import NAMESPACE, Lifecycle
from hansa.model.lookups import Reads
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key, Unknown
from hansa.model.references import Reference
from hansa.model.translation.tenant import pod as tenant_pod
from view_world import MAP, MAPS, NAMESPACES, NOW, POD, PODS, World


def test_a_copy_is_deleted_when_its_upper_object_is_gone_is_being_deleted_or_was_replaced(play):
    def scene(world):
        for name in ("stays", "gone", "leaves", "other"):
            world.put(world.upper, MAPS, lab.config_map(name))
            world.put(world.upper, PODS, lab.pod(name, "vn", config_map=name))
            _, [made] = world.decide(Key("up", MAPS, "default", name))
            world.put(world.lower, MAPS, made.obj)
        store = world.upper.stores[MAPS]
        store.apply(watching.Deleted(store.get(NamespacedName("default", "gone"))))
        world.put(world.upper, MAPS, lab.config_map("leaves"), deletion_timestamp=NOW)
        store.apply(
            watching.Modified(
                store.get(NamespacedName("default", "other")).with_metadata(uid="x", resource_version="999")
            )
        )
        assert {one.name for one in world.view.clusters.copies_to_delete(MAPS, "low")} == {"gone", "leaves", "other"}
        assert list(world.view.clusters.copies_to_delete(MAPS, "up")) == []

    play(scene)


def test_nothing_is_kept_of_a_refused_object_that_is_gone(play):
    def scene(world):
        world.view.refusals.update(POD, {"low": "spec.hostPID: true is not allowed"})
        world.view.forget(POD)
        assert world.view.refusals.of(POD, "low") == ""

    play(scene)


def test_an_unreachable_cluster_is_unknown_and_wakes_waiting_keys_when_it_is_back(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.lower.cluster.health.error = "it does not answer"
        world.lower.refresh()
        pair, [action] = world.decide(POD)
        assert pair.lowers["low"] == Unknown("it does not answer")
        assert action == plan.Wait("low is unknown: it does not answer")
        world.woken.clear()
        world.wakeups.notify("low")
        assert world.woken == [POD]
        world.upper.cluster.health.error = "gone"
        world.upper.refresh()
        assert isinstance(world.view.snapshot(POD).pair.upper, Unknown)

    play(scene)


def test_a_free_slot_of_the_pending_limit_goes_to_the_key_that_waits_longest(play):
    def scene(world):
        def pod(number):
            world.put(world.upper, PODS, lab.pod(f"p{number}", "vn"))
            return Key("up", PODS, "default", f"p{number}")

        for number in range(pending_limit.MOST):
            _, [made] = world.decide(pod(number))
            world.put(world.lower, PODS, made.obj)
        late = [pod("gone"), pod("late"), pod("later")]
        for key in late:
            _, [action] = world.decide(key)
            assert action == plan.Wait("the limit of pending objects of up in low is reached")
        store = world.upper.stores[PODS]
        store.apply(watching.Deleted(store.get(NamespacedName("default", "pgone"))))
        world.woken.clear()
        world.view.wake_pending(PODS)
        assert world.woken == []
        bound = world.lower.stores[PODS].get(NamespacedName("default", "p3"))
        world.put(world.lower, PODS, bound.with_fields(spec={**bound.spec, "nodeName": "n"}))
        creating = plan.Plan((plan.Create("low", bound, plan.Reason.PLACED),))
        with world.view.decided(world.view.snapshot(POD), creating):
            world.view.wake_pending(PODS)
        assert world.woken == []
        world.view.wake_pending(PODS)
        assert world.woken == [late[1]]
        for key in (late[2], pod("newcomer")):
            assert isinstance(world.decide(key)[1][0], plan.Wait)
        assert isinstance(world.decide(late[1])[1][0], plan.Create)
        world.put(world.upper, PODS, lab.pod("plater", "vn"), deletion_timestamp=NOW)
        world.decide(late[2])
        world.woken.clear()
        world.view.wake_pending(PODS)
        assert world.woken == [Key("up", PODS, "default", "pnewcomer")]

    queueing = replace(lab.SMALL.rules[PODS], pending_of=tenant_pod.awaiting_scheduler)
    play(scene, mode=replace(lab.SMALL, rules={**lab.SMALL.rules, PODS: queueing}))


def test_copies_are_unknown_while_every_cluster_that_needs_them_is_unreachable(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.lower.cluster.health.error = "it has not answered yet"
        world.lower.refresh()
        assert world.view.placements.copies(MAP) is None
        world.lower.cluster.health.error = ""
        world.lower.refresh()
        assert world.view.placements.copies(MAP) == []

    play(scene)


def test_an_unreachable_cluster_does_not_affect_objects_that_were_never_there(play):
    def scene(world):
        world.view.attach(Route("up", "other", nodes=frozenset({"vn2"})), world.side("other"))
        world.put(world.upper, PODS, lab.pod("p", "vn2"))
        world.lower.cluster.health.error = "it does not answer"
        world.lower.refresh()
        pair, [action] = world.decide(POD)
        assert set(pair.lowers) == {"other"}
        assert isinstance(action, plan.Create)
        assert world.view.placements.concerned(POD) == ["other"]

    play(scene)


def test_a_pair_without_a_difference_is_in_sync_until_one_side_changes(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        lower = world.put(world.lower, MAPS, made.obj)
        pair, actions = world.decide(MAP)
        assert (pair.in_sync, actions) == (frozenset(), ())
        pair, _ = world.decide(MAP)
        assert pair.in_sync == {"low"}
        world.put(world.lower, MAPS, lower.with_fields(data={"changed": "below"}))
        pair, [action] = world.decide(MAP)
        assert pair.in_sync == frozenset()
        assert isinstance(action, plan.Patch)

    play(scene)


def test_a_name_taken_by_a_foreign_object_wakes_the_pair_when_it_is_free(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        foreign = world.put(world.lower, PODS, lab.pod("p", "node"))
        _, [action] = world.decide(POD)
        assert isinstance(action, plan.Conflict)
        topic = world.view.clusters.topic("low", PODS, foreign)
        assert topic == LowerName("low", PODS, NamespacedName("default", "p"))
        world.woken.clear()
        world.wakeups.notify(topic)
        assert world.woken == [POD]

    play(scene)


def test_the_audit_lists_upper_objects_and_their_lower_copies(play):
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
        assert sorted(world.view.all_keys(), key=str) == [MAP._replace(name="orphan"), MAP, POD], "each once"

    play(scene)


def test_a_lower_cluster_that_leaves_is_forgotten(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        world.view.detach("low")
        assert POD in world.woken
        pair, actions = world.decide(POD)
        assert (pair.lowers, actions) == ({}, ())

    play(scene)


WITH_NAMESPACES = Mode(
    name="with-namespaces",
    rules={**lab.SMALL.rules, NAMESPACES: Rule(NAMESPACES, placement=placement.everywhere, lifecycle=NAMESPACE)},
    lower_name=lambda key, _uid, _link: NamespacedName(
        key.namespace and f"x-{key.namespace}", key.name if key.namespace else f"x-{key.name}"
    ),
)
NAMESPACE_KEY = Key("up", NAMESPACES, "", "default")


def test_where_namespaces_are_synced_all_other_objects_wait_for_their_namespace(play):
    def scene(world):
        world.put(world.upper, NAMESPACES, lab.namespace("default"))
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("waiting for Namespace default in low")
        _, [made] = world.decide(NAMESPACE_KEY)
        assert made.obj.name == "x-default"
        lower = world.put(world.lower, NAMESPACES, made.obj)
        world.wakeups.notify(NAMESPACE_KEY)
        assert POD in world.woken
        _, [made] = world.decide(POD)
        assert made.obj.key == NamespacedName("x-default", "p")
        world.put(world.lower, NAMESPACES, lower, deletion_timestamp=NOW)
        _, [action] = world.decide(POD)
        assert isinstance(action, plan.Wait), "nothing can be created in a namespace that is being deleted"

    play(scene, mode=WITH_NAMESPACES)


def reading(*references):
    """A mode whose ConfigMaps read these objects."""
    kinds = frozenset(one.resource for one in references)
    reads = Reads(kinds, lambda _: references, lists=frozenset(one.resource for one in references if not one.name))
    return replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: replace(lab.SMALL.rules[MAPS], reads=reads)})


def test_a_pair_has_the_objects_that_its_rule_reads_and_no_others(play):
    def scene(world):
        settings = world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, MAPS, lab.config_map("elsewhere", namespace="other"))
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        pair, [made] = world.decide(MAP)
        found = pair.links["low"].lookups
        assert found.upper(MAPS, settings.key) == settings
        assert found.lower(MAPS, settings.key) is None
        assert list(found.uppers(MAPS, "default")) == [settings]
        assert found.upper(PODS, pod.key) == pod
        for undeclared in (
            lambda: found.upper(PODS, NamespacedName("default", "q")),
            lambda: found.uppers(PODS, "default"),
        ):
            with pytest.raises(lookups.Undeclared):
                undeclared()
        copy = world.put(world.lower, MAPS, made.obj)
        world.put(world.lower, PODS, lab.pod("p", "node"))
        found = world.view.snapshot(MAP).pair.links["low"].lookups
        assert found.lower(MAPS, settings.key) == copy
        assert found.lower(PODS, pod.key) is None, "it is not ours"

    play(scene, mode=reading(Reference(MAPS, "default", ""), Reference(PODS, "default", "p")))


def test_a_snapshot_has_no_effects_and_a_second_one_is_equal(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.woken.clear()
        first, second = world.view.snapshot(POD), world.view.snapshot(POD)
        assert first == second
        assert first.pair.blocked == {"low": "waiting for ConfigMap default/settings in low"}
        assert MAP in first.topics
        assert world.wakeups.keys(MAP) == []
        assert world.woken == []

    play(scene)


def by_uid(key, uid, _link):
    return NamespacedName(key.namespace, f"{key.name}-{uid}")


def test_copies_whose_names_depend_on_the_uid_are_found_by_their_stamp(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        _, [made] = world.decide(POD)
        assert made.obj.name == "p-p-uid"
        copy = world.put(world.lower, PODS, made.obj)
        assert world.decide(POD)[0].lowers == {"low": copy}
        copied = world.put(world.lower, PODS, copy.with_metadata(name="copied-by-hand"))
        again = lab.pod("p", "vn").with_metadata(uid="second", resource_version="500")
        world.upper.stores[PODS].apply(watching.Modified(again))
        pair, actions = world.decide(POD)
        assert pair.lowers == {"low": None}
        assert pair.leftovers == {"low": (copy,)}, "a manifest that was copied with its stamp is not ours"
        assert [(type(one), one.obj) for one in actions if not isinstance(one, plan.Wait)] == [(plan.Delete, copy)]
        world.lower.stores[PODS].apply(watching.Deleted(copy.with_metadata(resource_version="501")))
        assert world.decide(POD)[1][0].obj.name == "p-second"
        world.upper.stores[PODS].apply(watching.Deleted(again.with_metadata(resource_version="502")))
        assert world.decide(POD)[1] == ()
        assert world.lower.stores[PODS].get(copied.key) == copied

    play(scene, mode=replace(lab.SMALL, lower_name=by_uid))


def test_in_a_cluster_that_is_linked_to_itself_copies_are_not_upper_objects(play):
    def scene(world):
        world.view.detach("low")
        world.view.attach(Route("up", "low", nodes=frozenset({"vn"}), is_self=True), world.lower)
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        _, [made] = world.decide(POD)
        copy = made.obj.with_fields(spec=lab.pod("p", "vn").spec)
        own = Key("up", PODS, "default", "p-p-uid")
        for sides in ((world.upper,), (world.upper, world.lower)):  # the watch of either side may be first
            for side in sides:
                copy = world.put(side, PODS, copy)
            assert world.view.placements.concerned(own) == []
            assert world.decide(own)[1] == ()
        pair, _ = world.decide(POD)
        assert pair.lowers["low"].uid == copy.uid

    play(scene, mode=replace(lab.SMALL, lower_name=by_uid))


RETAINED = Mode(
    name="retained",
    rules={**lab.SMALL.rules, MAPS: Rule(MAPS, placement=placement.with_users, lifecycle=Lifecycle(retention=120))},
)


def test_a_retained_copy_is_deleted_when_it_was_not_needed_for_the_retention_time():
    async def main(outer):
        world = World(outer, RETAINED)
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
            world.view.placements.changed(ObjectRef(PODS, pod.key))

        take(pod)
        assert await passes(0) == (plan.Wait("it is retained in low", seconds=120),)
        assert await passes(100) == (plan.Wait("it is retained in low", seconds=20),)
        again = world.put(world.upper, PODS, pod.with_metadata(name="p2"))
        assert await passes(10) == ()
        take(again)
        assert await passes(100) == (plan.Wait("it is retained in low", seconds=120),)
        [gone] = await passes(121)
        assert isinstance(gone, plan.Delete)
        world.lower.stores[MAPS].apply(watching.Deleted(gone.obj.with_metadata(resource_version="9999")))
        assert await passes(0) == ()
        world.put(world.lower, MAPS, made.obj)
        assert await passes(0) == (plan.Wait("it is retained in low", seconds=120),), "it begins anew"

    simulation.run(main)


def gone(world, mode_is_watched=True):
    """Deletes the upper pod, whose copy stays: the grace period of the copy's deletion."""
    ends = list(world.view.watch_forced_deletions()) if mode_is_watched else ()
    store = world.upper.stores[PODS]
    store.apply(watching.Deleted(store.get(POD_PLACE)))
    _, [action] = world.decide(POD)
    for end in ends:
        end()
    return action.grace


POD_PLACE = NamespacedName("default", "p")
EVERYWHERE = Mode(name="everywhere", rules={PODS: Rule(PODS, lifecycle=lifecycle.POD, placement=placement.everywhere)})


@pytest.mark.parametrize(
    ("node", "is_watched", "grace"), [("vn", True, 0), ("", True, None), ("vn", False, None), ("", False, None)]
)
def test_only_a_bound_pod_that_was_seen_to_vanish_was_deleted_by_force(node, is_watched, grace):
    outer = simulation.World()
    world = World(outer, EVERYWHERE)
    spec = lab.pod("p", node).spec if node else {k: v for k, v in lab.pod("p", "").spec.items() if k != "nodeName"}
    world.put(world.upper, PODS, lab.pod("p", node).with_fields(spec=spec))
    _, [made] = world.decide(POD)
    world.put(world.lower, PODS, made.obj)
    assert gone(world, is_watched) == grace
