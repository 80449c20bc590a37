"""Modes: how a lower object is made of an upper one, which rule applies, and when its content is the same."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, lifecycle, placement, stamp
from hansa.model.lifecycle import Lifecycle
from hansa.model.mode import InvalidMode, Mode, PatchPart, Rule, patches_of
from hansa.model.pair import Grade, Key, Link, content

KEY = Key("up", resources.PODS, "shop", "web")
LINK = Link("up", "id-of-up", "a")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "generateName": "we",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-11-15T11:00:00Z",
        "deletionTimestamp": "2026-11-15T12:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "labels": {"app": "web"},
        "annotations": {"note": "x", keys.LOWER_UID: "l0"},
        "finalizers": ["a/b"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"}],
        "managedFields": [{"manager": "kubectl"}],
    },
    "spec": {"v": 1},
    "status": {"phase": "Running"},
}


def a_step(pod: Object, link: Link) -> Object:
    return pod.with_fields(spec=pod.spec | {"in": link.lower})


def test_steps_see_the_namespace_uid_and_owner_of_the_upper_object() -> None:
    def note(pod: Object, _link: Link) -> Object:
        return pod.with_fields(spec={"of": [pod.namespace, pod.uid, pod.metadata.owner_references[0].name]})

    mode = Mode(
        "test",
        {resources.PODS: Rule(resources.PODS, down=(note,))},
        lambda key, _uid, _link: NamespacedName("below", key.name),
    )
    assert mode.desired(Object.of(POD), KEY, LINK).spec == {"of": ["shop", "u1", "web"]}


def test_only_the_status_fields_of_a_rule_are_synced_down() -> None:
    def phase(obj: Object) -> dict[str, Any]:
        return {"phase": obj.status["phase"]}

    pod = Object.of(POD | {"status": {"phase": "Running", "podIP": "10.0.0.1"}})
    for rule, status in ((Rule(resources.PODS, status_down=phase), POD["status"]), (Rule(resources.PODS), {})):
        assert Mode("test", {resources.PODS: rule}).desired(pod, KEY, LINK).status == status


def test_a_lower_object_is_what_the_steps_make_of_the_upper_one_and_the_mark() -> None:
    mode = Mode(
        name="test",
        rules={resources.PODS: Rule(resources.PODS, down=(a_step,))},
        lower_name=lambda key, _uid, link: NamespacedName(f"{link.lower}-{key.namespace}", key.name),
    )
    assert mode.desired(Object.of(POD), KEY, LINK).to_dict() == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "a-shop",
            "labels": {"app": "web", keys.UPPER: "id-of-up"},
            "annotations": {
                "note": "x",
                keys.UPPER_UID: "u1",
                keys.UPPER_NAME: "shop/web",
                keys.CARRIED: "app;note",
            },
        },
        "spec": {"v": 1, "in": "a"},
    }


def test_patches_name_what_differs_of_the_fields_that_follow() -> None:
    mode = Mode(name="test", rules={resources.PODS: Rule(resources.PODS)})
    lower = mode.desired(Object.of(POD), KEY, LINK)
    wanted = lower.with_fields(spec={"v": 2}, other={"not": "followed"})
    assert patches_of("spec")(lower, wanted) == [PatchPart({"spec": {"v": 2}})]
    assert patches_of("other")(lower, lower) == []
    assert list(Rule(resources.PODS).down_patches(lower, wanted)) == []


def test_what_an_object_refers_to_is_needed_until_it_is_finished() -> None:
    facts = placement.PlacementContext(frozenset("a"), {}, lambda *_: frozenset())
    rule = Rule(resources.PODS, placement=placement.everywhere, lifecycle=lifecycle.POD)
    pod = Object.of(POD)
    assert rule.needs(pod, KEY, facts) == {"a": Grade.CHOSEN}
    assert rule.needs(pod.with_fields(status={"phase": "Failed"}), KEY, facts) == {}


def test_the_content_of_an_object_does_not_depend_on_its_status() -> None:
    pod = Object.of(POD)
    later = pod.with_fields(status={"phase": "Failed"}).with_metadata(
        resource_version="8", annotations={"note": "x", keys.LOWER_UID: "l1"}
    )
    assert content(pod) == content(later)
    for changed in (
        pod.with_fields(spec={"v": 2}),
        pod.with_metadata(labels={}),
        pod.with_metadata(annotations={"note": "y"}),
        pod.with_metadata(uid="u2"),
        pod.with_metadata(deletion_timestamp=None),
    ):
        assert content(pod) != content(changed)


def test_the_content_of_an_object_without_a_status_is_its_version() -> None:
    settings = Object.of({"metadata": {"uid": "u", "resourceVersion": "1"}, "data": {"a": "1"}})
    assert content(settings) != content(settings.with_metadata(resource_version="2"))


def test_the_mark_of_a_lower_object_names_the_upper_one_whatever_its_place() -> None:
    mode = Mode(
        name="test", rules={resources.PODS: Rule(resources.PODS)}, lower_name=lambda *_: NamespacedName("x", "y")
    )
    assert stamp.of(mode.desired(Object.of(POD), KEY, LINK)) == stamp.Origin("id-of-up", "u1", "shop", "web")


def test_a_kind_that_may_be_outlined_has_no_finalizer_of_ours() -> None:
    rule = Rule(resources.SECRETS, unused_last=True, lifecycle=Lifecycle(finalizer="example.com/ours"))
    with pytest.raises(InvalidMode, match="secrets may be outlined, so its finalizers are unknown"):
        Mode("outlined", {resources.SECRETS: rule})
