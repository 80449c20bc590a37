"""Placements of one upper cluster: when they are computed, and which keys are requeued when they change."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace

import pytest

import engine_lab as lab
from hansa.engine.registry import Route
from hansa.engine.tokens import Tokens
from hansa.kube.objects import Malformed, Object
from hansa.model import placement, plan
from hansa.model.lifecycle import NAMESPACE
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key
from hansa.model.references import Missing, Reference
from view_world import MAP, MAPS, NAMESPACES, POD, PODS

TOKEN_SPEC = {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}
POOLED = Mode(
    name="pooled",
    rules={
        **lab.SMALL.rules,
        NAMESPACES: Rule(NAMESPACES, placement=placement.by_annotation("where", str.split), lifecycle=NAMESPACE),
        MAPS: Rule(MAPS, placement=placement.with_namespace, follows_namespace=True),
    },
)


def test_objects_placed_with_their_namespace_are_requeued_when_its_placement_changes(play):
    def scene(world):
        world.view.attach(Route("up", "other"), world.side("other"))
        world.put(world.upper, MAPS, lab.config_map("settings"))
        world.put(world.upper, MAPS, lab.config_map("far", namespace="far"))
        assert world.view.placements.concerned(MAP) == []

        def placed(where):
            world.woken.clear()
            world.put(world.upper, NAMESPACES, lab.namespace("default", annotations={"where": where, "note": where}))
            return world.view.placements.concerned(MAP)

        assert placed("low") == ["low"]
        assert world.woken == [MAP]
        assert placed("low other") == ["low", "other"]
        _, actions = world.decide(MAP)
        assert [action.message for action in actions] == [
            "waiting for Namespace default in low",
            "waiting for Namespace default in other",
        ]
        assert placed("low  other") == ["low", "other"]
        assert world.woken == [], "it is where it was"
        assert placed("") == []
        assert world.woken == [MAP]

    play(scene, mode=POOLED)


def test_placement_is_computed_once_for_a_change_of_either_side(play):
    calls = []

    def counted(upper, key, context):
        calls.append(key)
        return placement.by_node_name(upper, key, context)

    def scene(world):
        def reconcile():
            """The way of a change: to its group in the queue, and to a decision."""
            assert world.view.placements.concerned(POD) == ["low"]
            return world.decide(POD)[1]

        world.put(world.upper, PODS, lab.pod("p", "vn"))
        [created] = reconcile()
        assert calls == [POD]
        world.put(world.lower, PODS, created.obj)
        reconcile()
        assert calls == [POD, POD]
        world.put(world.upper, PODS, lab.pod("p", "elsewhere"))
        [deleted] = reconcile()
        assert isinstance(deleted, plan.Delete), "a new placement is not taken from before"
        assert calls == [POD, POD, POD]
        world.put(world.upper, PODS, lab.pod("far", "elsewhere"))
        assert world.view.placements.concerned(POD._replace(name="far")) == []
        assert not world.view.placements._computed, "nothing stays of keys that are dropped"

    counting = replace(lab.SMALL.rules[PODS], placement=counted)
    play(scene, mode=replace(lab.SMALL, rules={**lab.SMALL.rules, PODS: counting}))


def test_one_malformed_object_does_not_keep_others_from_being_placed(play):
    def scene(world):
        malformed = Object.of({**lab.pod("odd", "vn").to_dict(), "spec": {"nodeName": 5}})
        world.put(world.upper, PODS, malformed)
        world.put(world.upper, PODS, lab.pod("web", "vn"))
        world.woken.clear()
        world.view.placements.links_changed()
        assert "web" in [key.name for key in world.woken]
        with pytest.raises(Malformed, match="default/odd"):
            world.decide(Key("up", PODS, "default", "odd"))

    play(scene)


def test_what_has_no_upper_object_is_requeued_when_its_cluster_is_linked_and_by_the_audit(play):
    """A pod can be placed in a cluster before that is linked. No cache lists a placeholder or a token."""

    def references(_pod):
        return [Reference(MAPS, "default", "settings", missing=Missing.PLACEHOLDER)]

    def scene(world):
        placements, injected = world.view.placements, vars(world.outer)
        ignore = {"issued": lambda _: None, "refused": lambda *_: None}
        with contextlib.closing(Tokens(world.upper, "id", copies=placements.copies, **ignore, **injected)) as minted:
            placements.tokens = minted
            world.put(world.upper, PODS, lab.pod("p", "", annotations={"where": "other"}).with_fields(spec=TOKEN_SPEC))
            [secret] = minted.needed_by(world.view.clusters.get(POD))
            wanted = {MAP, world.view.clusters.key(secret)}
            world.woken.clear()
            world.view.attach(Route("up", "other"), world.side("other"))
            assert wanted <= set(world.woken)
            assert wanted <= set(world.view.all_keys())
            assert placements.concerned(MAP) == ["other"]

    pods = replace(lab.SMALL.rules[PODS], placement=placement.by_annotation("where"), references=references)
    play(scene, mode=replace(lab.TOKENED, rules={**lab.TOKENED.rules, PODS: pods}))


def test_a_token_is_requested_when_a_cluster_is_linked_that_is_known_already(play):
    def scene(world):
        asked = []
        tokens = SimpleNamespace(lower_changed=lambda: asked.append(True), secret=lambda _: None)
        world.view.placements.tokens = tokens
        world.view.attach(Route("up", "other"), world.side("other"))
        assert asked == [True]

    play(scene)
