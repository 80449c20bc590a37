"""References of an object in a view: waits, reports, names that are kept free, copies that are kept while in use."""

import dataclasses
import datetime

import pytest

import engine_lab as lab
from hansa.engine.view.topics import NamespaceScope, ObjectRef
from hansa.kube import watching
from hansa.kube.objects import NamespacedName, Object
from hansa.model import placement, plan, stamp
from hansa.model.lookups import Reads
from hansa.model.mode import InvalidMode, Rule
from hansa.model.pair import Key
from hansa.model.references import Missing, Reference
from view_world import MAP, MAP_PLACE, MAPS, NAMESPACES, POD, PODS


def test_a_pod_waits_for_what_it_refers_to_and_is_woken_by_it(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("waiting for ConfigMap default/settings in low")
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        world.wakeups.notify(MAP)
        assert POD in world.woken
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene)


def test_a_reference_without_an_upper_object_is_not_waited_for(play):
    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene)


def test_a_copy_of_a_former_object_does_not_satisfy_a_reference(play):
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


def test_a_required_upper_object_is_waited_for_and_soon_reported(play):
    def scene(world):
        now = world.outer.clock.wall()
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"), creation_timestamp=now)
        sentence = "waiting for ConfigMap default/settings: not found"
        _, [action] = world.decide(POD)
        assert action == plan.Wait(sentence, seconds=2.0)
        old = now - datetime.timedelta(seconds=2)
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"), creation_timestamp=old)
        _, [action] = world.decide(POD)
        assert action == plan.Refuse("low", sentence)
        assert world.wakeups.keys(MAP) == [POD]
        world.put(world.upper, MAPS, lab.config_map("settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        _, [made] = world.decide(POD)
        assert isinstance(made, plan.Create)

    play(scene, mode=reading(Missing.REQUIRED))


def test_an_empty_placeholder_keeps_the_name_of_an_optional_reference_while_it_is_used(play):
    def scene(world):
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("waiting for ConfigMap default/settings in low")
        _, [made] = world.decide(MAP)
        assert (made.obj.key, made.obj.get("data")) == (NamespacedName("default", "settings"), None)
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
        world.view.placements.changed(ObjectRef(PODS, pod.key))
        assert world.woken[-1] == MAP
        _, [action] = world.decide(MAP)
        assert (type(action), action.obj) == (plan.Delete, empty)

    play(scene, mode=reading(Missing.PLACEHOLDER))


WITH_NAMESPACES = dataclasses.replace(
    lab.SMALL,
    creates_namespaces=False,
    rules={**lab.SMALL.rules, NAMESPACES: Rule(NAMESPACES, placement=placement.everywhere)},
)


def test_a_pod_waits_for_the_namespace_of_its_own_upper_cluster(play):
    """An upper cluster may lie: have no Namespace for its pods, or one with the uid of another upper cluster's."""
    waits = [plan.Wait("waiting for Namespace default in low")]

    def scene(world):
        world.put(world.upper, PODS, lab.pod("p", "vn"))
        key, named = Key("up", NAMESPACES, "", "default"), Object.of({"metadata": {"name": "default"}})
        theirs = stamp.put(named, stamp.Origin("another", "default-uid", "", "default"))
        world.put(world.lower, NAMESPACES, theirs)
        assert [*world.decide(POD)[1]] == waits
        world.put(world.upper, NAMESPACES, named)
        assert [*world.decide(POD)[1]] == waits
        assert isinstance(world.decide(key)[1][0], plan.Conflict)
        world.put(world.lower, NAMESPACES, stamp.put(named, stamp.Origin("id", "default-uid", "", "default")))
        assert isinstance(world.decide(POD)[1][0], plan.Create)

    play(scene, mode=WITH_NAMESPACES)


def test_a_computed_object_waits_for_its_sources_and_is_reconciled_when_they_change(play):
    """It can be another one at any time, so it is never settled."""
    rule = lab.SMALL.rules[MAPS]
    sources = [Reference(MAPS, "default", "source"), Reference(PODS, "default", "")]
    computed_from = dataclasses.replace(rule, computed_from=lambda key: sources if key == MAP else [])

    def scene(world):
        source = world.put(world.upper, MAPS, lab.config_map("source"))
        for name in ("settings", "source"):
            world.put(world.upper, PODS, lab.pod(f"reads-{name}", "vn", config_map=name))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        _, [action] = world.decide(MAP)
        assert action == plan.Wait("waiting for ConfigMap default/source in low")
        _, [made] = world.decide(world.view.clusters.key(ObjectRef(MAPS, source.key)))
        world.put(world.lower, MAPS, made.obj)
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        assert world.decide(MAP)[1] == ()
        assert world.decide(MAP)[0].in_sync == frozenset()
        for resource in (MAPS, PODS):
            assert world.wakeups.keys(NamespaceScope("up", resource, "default")) == [MAP]

    play(scene, mode=dataclasses.replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: computed_from}))


def test_a_pair_is_compared_again_when_objects_that_may_select_it_change(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        world.decide(MAP)
        assert world.decide(MAP)[0].in_sync == {"low"}
        world.put(world.upper, PODS, lab.pod("other", "vn"))
        assert world.decide(MAP)[0].in_sync == frozenset()
        assert world.decide(MAP)[0].in_sync == {"low"}
        clusters, other = world.view.clusters, ObjectRef(PODS, NamespacedName("default", "other"))
        assert (list(clusters.selected({"default"})), list(clusters.selected({"elsewhere"}))) == ([MAP], [])
        changes = [clusters.selection_changed(ref) for ref in (other, other, ObjectRef(MAPS, MAP_PLACE))]
        assert changes == [True, False, False]

    reads = Reads(frozenset({PODS}), lambda _: (), lists=frozenset({PODS}))
    selected_by = dataclasses.replace(lab.SMALL.rules[MAPS], selected_by=frozenset({PODS}), reads=reads)
    play(scene, mode=dataclasses.replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: selected_by}))


def test_a_copy_stays_while_its_namespace_has_copies_of_a_kind_also_of_objects_that_are_gone(play):
    def scene(world):
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        _, [made] = world.decide(MAP)
        world.put(world.lower, MAPS, made.obj)
        _, [made] = world.decide(POD)
        lower = world.put(world.lower, PODS, made.obj)
        for resource, name in ((PODS, pod.key), (MAPS, MAP_PLACE)):
            world.upper.stores[resource].apply(watching.Deleted(world.upper.stores[resource].get(name)))
            world.view.placements.changed(ObjectRef(resource, name))
        assert world.decide(MAP)[1] == (plan.Wait("other objects in low still read it"),)
        world.lower.stores[PODS].apply(watching.Deleted(lower))
        _, [action] = world.decide(MAP)
        assert type(action) is plan.Delete

    rule = dataclasses.replace(lab.SMALL.rules[MAPS], outlives=lambda key: PODS if key == MAP else None)
    play(scene, mode=dataclasses.replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: rule}))


def test_a_mode_lists_what_selects_its_objects():
    rule = dataclasses.replace(lab.SMALL.rules[MAPS], selected_by=frozenset({PODS}))
    with pytest.raises(InvalidMode, match="does not list"):
        dataclasses.replace(lab.SMALL, rules={**lab.SMALL.rules, MAPS: rule})


def test_a_copy_is_kept_while_a_lower_pod_reads_it_and_deleted_with_the_pod(play):
    def scene(world):
        world.put(world.upper, MAPS, lab.config_map("settings"))
        pod = world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        world.put(world.lower, MAPS, world.decide(MAP)[1][0].obj)
        made = world.decide(POD)[1][0].obj
        world.upper.stores[MAPS].apply(watching.Deleted(world.upper.stores[MAPS].get(MAP_PLACE)))
        [action] = world.decide(MAP)[1]
        assert isinstance(action, plan.Delete), "the pod is not below yet, and waits"
        world.put(world.lower, PODS, made)
        assert world.decide(MAP)[1] == (plan.Wait("other objects in low still read it"),)
        world.upper.stores[PODS].apply(watching.Deleted(pod))
        world.view.placements.changed(ObjectRef(PODS, pod.key))
        assert world.woken[-1] == MAP
        [action] = world.decide(MAP)[1]
        assert isinstance(action, plan.Delete)

    play(scene, mode=reading(Missing.REQUIRED))


def test_a_reference_whose_name_is_taken_by_a_foreign_object_is_waited_for(play):
    def scene(world):
        world.put(world.lower, MAPS, lab.config_map("settings"))
        world.put(world.upper, PODS, lab.pod("p", "vn", config_map="settings"))
        _, [action] = world.decide(POD)
        assert action == plan.Wait("waiting for ConfigMap default/settings in low")
        _, [action] = world.decide(MAP)
        assert isinstance(action, plan.Conflict)

    play(scene, mode=reading(Missing.PLACEHOLDER))
