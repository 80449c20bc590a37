"""The decision as a table: one line for each state of a pair, with the actions."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from decided_pairs import (
    ACCOUNTS,
    CLAIMS,
    GUESTS,
    HERE,
    LEAVING,
    LINKS,
    MODE,
    RULES,
    RUNNING,
    SETTINGS,
    actions,
    decided,
    foreign,
    line,
    lower,
    synced,
    upper,
)
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import decision, keys, plan
from hansa.model.limits import Amounts, Limit, Limits, Room
from hansa.model.mode import Mode, PatchPart
from hansa.model.pair import Grade, Key, Pair, Side, Unknown


@pytest.mark.parametrize(
    ("above", "below", "lines"),
    [
        # A life.
        (upper(), {}, ["create in a"]),
        (upper(), {"a": lower(status={"phase": "Pending"})}, ["patch u1/status in up"]),
        (synced(), {"a": lower()}, []),
        (synced(spec="2"), {"a": lower()}, ["patch l1 in a"]),
        (synced(**LEAVING, deletionGracePeriodSeconds=9), {"a": lower()}, ["delete l1 in a, grace 9"]),
        (synced(**LEAVING, deletionGracePeriodSeconds=9), {"a": lower(**LEAVING, deletionGracePeriodSeconds=9)}, []),
        (synced(**LEAVING, deletionGracePeriodSeconds=9), {"a": None}, ["delete u1 in up, grace 0"]),
        (None, {}, []),
        # A shorter grace is handed on, a longer one is not.
        (
            synced(**LEAVING, deletionGracePeriodSeconds=1),
            {"a": lower(**LEAVING, deletionGracePeriodSeconds=9)},
            ["delete l1 in a, grace 1"],
        ),
        (
            synced(**LEAVING, deletionGracePeriodSeconds=30),
            {"a": lower(**LEAVING, deletionGracePeriodSeconds=9)},
            [],
        ),
        # Gone above, in this life or a former one: it was not bound yet, or nobody saw how it was deleted.
        (None, {"a": lower()}, ["delete l1 in a, grace None"]),
        (upper(), {"a": lower("u0")}, ["delete l1 in a, grace None"]),
        # Not bound yet, and held by a finalizer: its API server gives it no grace period.
        (
            upper(**LEAVING, deletionGracePeriodSeconds=0),
            {"a": lower()},
            ["delete l1 in a, grace None", "patch u1/status in up"],
        ),
        (upper(), {"a": lower("u0", **LEAVING, deletionGracePeriodSeconds=0, finalizers=["x/y"])}, []),
        # Lost, or deleted, below.
        (synced(), {"a": None}, ["delete u1 in up, grace 0"]),
        (synced(), {"a": foreign()}, ["conflict in a", "delete u1 in up, grace 0"]),
        (synced(), {"a": lower(**LEAVING, deletionGracePeriodSeconds=9)}, ["delete u1 in up, grace 9"]),
        (synced(spec="2"), {"a": lower(**LEAVING, deletionGracePeriodSeconds=9)}, ["delete u1 in up, grace 9"]),
        (upper(annotations={keys.LOWER_UID: "l0"}), {"a": None}, ["create in a"]),
        # Finished.
        (upper(status={"phase": "Succeeded"}), {"a": None}, []),
        (synced(status=RUNNING | {"phase": "Succeeded"}), {"a": None}, []),
        (synced(), {"a": lower(status={"phase": "Failed"}, **LEAVING)}, ["patch u1/status in up"]),
        (upper(status={"phase": "Failed"}), {"a": lower()}, ["delete l1 in a, grace None"]),
        # Held by a foreign finalizer.
        (
            synced(status=RUNNING | {"phase": "Failed"}, **LEAVING, deletionGracePeriodSeconds=0, finalizers=["x/y"]),
            {},
            [],
        ),
        # An API server died in the middle of a deletion.
        (synced(**LEAVING, deletionGracePeriodSeconds=0), {}, ["delete u1 in up, grace 0"]),
        (
            synced(**LEAVING, deletionGracePeriodSeconds=9, finalizers=["x/y"]),
            {},
            ["patch u1/status in up", "delete u1 in up, grace 0"],
        ),
        (
            synced(**LEAVING, deletionGracePeriodSeconds=9, finalizers=["x/y"]),
            {"a": lower(status={"phase": "Succeeded"})},
            ["wait", "patch u1/status in up"],
        ),
        # Not ours.
        (upper(), {"a": foreign()}, ["conflict in a"]),
        (upper(), {"a": lower(upper_id="another")}, ["conflict in a"]),
        (None, {"a": foreign()}, []),
        (None, {"a": lower(upper_id="another")}, []),
        # Not to be seen.
        (upper(), {"a": Unknown("no answer")}, ["wait"]),
        (synced(), {"a": Unknown("no answer")}, ["wait"]),
        (synced(**LEAVING, deletionGracePeriodSeconds=9), {"a": Unknown("no answer")}, ["wait"]),
        (Unknown("no answer"), {"a": lower()}, ["wait"]),
    ],
)
def test_a_pod_that_is_placed(above: Side, below: Mapping[str, Side], lines: list[str]) -> None:
    assert decided(above, below) == lines


def test_a_pod_on_a_foreign_node_is_left_alone() -> None:
    assert decided(synced(**LEAVING, deletionGracePeriodSeconds=9), {}, {}) == []


def test_candidates_are_deleted_when_a_choice_is_made() -> None:
    both = {"a": Grade.CANDIDATE, "b": Grade.CANDIDATE}
    assert decided(upper(), {}, both) == ["create in a", "create in b"]
    copies = {"a": lower(status={}), "b": lower(status={}, uid="l2")}
    assert decided(upper(), copies, both) == []
    chosen = both | {"b": Grade.CHOSEN}
    assert decided(upper(status={}, annotations={keys.LOWER_UID: "l2"}), copies, chosen) == [
        "delete l1 in a, grace None"
    ]


def test_the_copy_of_a_pod_that_was_deleted_by_force_gets_no_grace_period() -> None:
    assert decided(None, {"a": lower()}, forced=frozenset({"u1"})) == ["delete l1 in a, grace 0"]
    assert decided(upper(), {"a": lower("u0")}, forced=frozenset({"u0"})) == ["delete l1 in a, grace 0"]
    there = {"a": lower(**LEAVING, deletionGracePeriodSeconds=30)}
    assert decided(None, there, forced=frozenset({"u1"})) == ["delete l1 in a, grace 0"]
    assert decided(None, there) == []
    bound = lower().to_dict() | {"spec": {"v": "1", "nodeName": "n1"}}
    leaving = {**LEAVING, "deletionGracePeriodSeconds": 0}
    above = Object.of(bound | {"metadata": upper(**leaving).to_dict()["metadata"]})
    assert decided(above, {"a": lower()})[0] == "delete l1 in a, grace 0"


def test_a_copy_is_created_when_the_one_elsewhere_is_gone_or_was_of_a_former_object() -> None:
    assert decided(upper(), {"b": lower()}) == ["wait", "delete l1 in b, grace None"]
    assert decided(upper(), {"b": lower(**LEAVING)}) == ["wait"]
    assert decided(upper(), {"b": Unknown("no answer", lower())}) == ["wait", "wait"]
    assert decided(upper(), {"b": lower("u0")}) == ["wait", "delete l1 in b, grace None"]
    assert decided(upper(), {"b": Unknown("no answer", lower("u0"))}) == ["create in a"]
    assert decided(upper(), {"b": Unknown("no answer")}) == ["create in a"]


@pytest.mark.parametrize(
    ("below", "lines"),
    [
        ({"b": lower()}, ["wait", "delete l1 in b, grace None"]),
        ({"b": lower(**LEAVING)}, ["wait"]),
        ({"b": lower("u0")}, ["wait", "delete l1 in b, grace None"]),
        ({"b": Unknown("no answer")}, ["wait", "wait"]),
        ({"b": None}, ["create in a", "patch u1 in up"]),
        ({"b": foreign()}, ["create in a", "patch u1 in up"]),
    ],
)
def test_a_moved_object_is_created_when_its_former_copy_is_gone_and_the_mark_removed(below, lines) -> None:
    assert _moved(below, HERE | {"b": Grade.PAST}) == lines


def test_a_process_that_cannot_see_the_former_cluster_waits_for_the_mark_to_be_removed() -> None:
    assert _moved({}, HERE | {"z": Grade.PAST}) == ["wait", "wait"]  # "z" is another process's
    assert _moved({}, {"z": Grade.CHOSEN, "b": Grade.PAST}) == ["wait", "patch u1 in up"]
    assert _moved({"b": None}, {"b": Grade.PAST}) == ["patch u1 in up"], "it is not wanted there"


def _moved(below: Mapping[str, Side], intents: Mapping[str, Grade]) -> list[str]:
    rule = replace(
        RULES[resources.PODS], on_moved=lambda _, cluster: [PatchPart({"metadata": {"labels": {cluster: ""}}})]
    )
    pair = Pair(Key("up", resources.PODS, "shop", "web"), upper(), LINKS, below, intents=intents)
    return [line(action) for action in decision.decide(pair, Mode("test", {resources.PODS: rule})).actions]


def test_copies_of_referenced_objects_are_created_and_deleted_with_their_users() -> None:
    assert decided(upper(), {"b": lower(status={})}, of=SETTINGS) == ["create in a", "delete l1 in b, grace None"]


def test_one_of_several_copies_is_synced_up_and_no_other_while_it_is_unknown() -> None:
    both = {"a": Grade.CHOSEN, "b": Grade.CHOSEN}
    first, second = lower(status={"from": "a"}), lower(status={"from": "b"}, uid="l2")
    assert decided(upper(), {"a": first, "b": second}, both, of=CLAIMS) == ["patch u1/status in up"]
    assert decided(upper(), {"a": Unknown("no answer"), "b": second}, both, of=CLAIMS) == ["wait"]
    assert decided(upper(), {"a": foreign(), "b": second}, both, of=ACCOUNTS) == ["patch u1/status in up"]


def test_with_merged_statuses_every_visible_copy_is_synced_up() -> None:
    several = Mode(name="test", rules={SETTINGS: replace(RULES[SETTINGS], merges_statuses=True)})
    both = {"a": Grade.CHOSEN, "b": Grade.CHOSEN}
    for below, lines in (
        ({"a": lower(), "b": lower()}, ["patch u1/status in up"] * 2),
        ({"a": Unknown("it is away"), "b": lower()}, ["wait", "patch u1/status in up"]),
    ):
        pair = Pair(Key("up", SETTINGS, "shop", "web"), upper(), LINKS, below, both)
        assert [line(action) for action in decision.decide(pair, several).actions] == lines


def test_copies_that_hold_data_stay_until_the_upper_object_is_deleted() -> None:
    there = {"b": lower(status={})}
    assert decided(upper(), there, {}, of=CLAIMS) == []
    assert decided(upper(spec="2"), there, {}, of=CLAIMS) == ["patch l1 in b"]
    assert decided(upper(**LEAVING), there, {}, of=CLAIMS) == ["delete l1 in b, grace None"]
    assert decided(None, there, {}, of=CLAIMS) == ["delete l1 in b, grace None"]


def test_an_object_with_a_missing_upper_reference_waits_and_is_refused_then() -> None:
    pair = Pair(Key("up", resources.PODS, "shop", "web"), upper(), LINKS, {"a": None}, HERE, missing="no secret")
    mode = Mode("test", RULES)
    assert decision.decide(replace(pair, patience=1.5), mode).actions == (plan.Wait("no secret", seconds=1.5),)
    assert decision.decide(pair, mode).actions[0] == plan.Refuse("a", "no secret")


def test_a_copy_that_others_read_outlives_its_upper_object() -> None:
    key = Key("up", SETTINGS, "shop", "web")
    for in_use, kind in ((frozenset({"a"}), plan.Wait), (frozenset[str](), plan.Delete)):
        pair = Pair(key, None, LINKS, {"a": lower(status={})}, in_use=in_use)
        [action] = decision.decide(pair, Mode("test", RULES)).actions
        assert isinstance(action, kind)


def test_an_object_of_the_same_name_serves_where_the_kind_shares_names() -> None:
    assert decided(upper(), {"a": foreign()}, of=ACCOUNTS) == []


def test_an_object_that_needs_a_kind_that_may_not_be_read_is_refused() -> None:
    forbidden = {"a": "secrets may not be read in a"}
    assert decided(upper(), {}, blocked={"a": "a secret is not in a yet"}, forbidden=forbidden) == ["refuse in a"]
    assert decided(upper(), {"a": Unknown("may not list pods")}, forbidden=forbidden) == ["wait", "refuse in a"]


def test_an_object_waits_while_its_creation_is_blocked() -> None:
    assert decided(upper(), {}, blocked={"a": "secrets shop/key is not in a yet"}) == ["wait"]


def test_a_pair_in_sync_is_not_computed_again() -> None:
    assert decided(synced(spec="2"), {"a": lower()}, in_sync=frozenset({"a"})) == []


def test_kinds_that_the_mode_does_not_know_and_clusters_without_a_link_are_left_alone() -> None:
    assert decided(upper(), {"a": lower()}, of=resources.NODES) == []
    assert decided(upper(), {"z": lower()}, {"z": Grade.CHOSEN}) == ["wait"]


def test_an_object_that_is_not_allowed_is_refused_and_its_existing_copy_stays_as_it_is() -> None:
    assert actions(upper(spec="big"), {}, of=GUESTS) == (plan.Refuse("a", "it is too big"),)
    assert decided(upper(spec="big"), {"a": lower(status={"phase": "Pending"})}, of=GUESTS) == [
        "refuse in a",
        "patch u1/status in up",
    ]
    assert decided(None, {"a": lower()}, of=GUESTS) == ["delete l1 in a, grace None"]
    assert decided(upper(spec="small"), {}, of=GUESTS) == ["create in a"]


def test_a_refusal_is_reported_on_the_upper_object_if_its_rule_has_a_patch_for_it() -> None:
    def word(_guest: Object, sentence: str) -> list[PatchPart]:
        return [PatchPart({"status": {"why": sentence}}, "status")]

    mode = replace(MODE, rules={GUESTS: replace(RULES[GUESTS], on_refused=word)})
    pair = Pair(Key("up", GUESTS, "shop", "web"), upper(spec="big"), LINKS, {}, HERE)
    [_, reported] = decision.decide(pair, mode).actions
    assert isinstance(reported, plan.Patch)
    assert reported.patch == {"status": {"why": "it is too big"}}


def test_a_lower_namespace_is_deleted_when_the_upper_one_is_gone_not_while_it_terminates() -> None:
    there = {"a": lower(status={"phase": "Pending"})}
    assert decided(upper(**LEAVING, annotations={keys.LOWER_UID: "l1"}), there, of=resources.NAMESPACES) == ["wait"]
    assert decided(upper(**LEAVING), {}, of=resources.NAMESPACES) == []
    assert decided(None, there, {}, of=resources.NAMESPACES) == ["delete l1 in a, grace None"]


def test_a_copy_of_another_route_between_the_same_clusters_is_left_alone_while_its_upper_object_exists() -> None:
    brought = {"a": lower(annotations={**lower().annotations, keys.ROUTE: "vn2"})}
    ours = {"a": replace(LINKS["a"], nodes=frozenset({"vn1"}))}

    def seen(above: Side, intents: Mapping[str, Grade], of: Resource = resources.PODS) -> list[str]:
        pair = Pair(Key("up", of, "shop", "web"), above, ours, brought, intents)
        return [line(action) for action in decision.decide(pair, MODE).actions]

    assert seen(synced(), {}) == []
    assert seen(synced(spec="2"), {}) == []
    assert seen(synced(**LEAVING, deletionGracePeriodSeconds=9), {}) == []
    assert seen(upper(spec="2"), HERE, SETTINGS) == [], "it serves as well, and is the other's to change"
    assert seen(None, {}) == ["delete l1 in a, grace None"], "an orphan is everybody's"
    ours["a"] = replace(LINKS["a"], nodes=frozenset({"vn1", "vn2"}))
    assert seen(synced(spec="2"), HERE) == ["patch l1 in a"]


@pytest.mark.parametrize(
    ("above", "below", "lines"),
    [
        (upper(), {"a": None}, []),  # nothing is created
        (upper(), {"a": lower("u0")}, ["delete l1 in a, grace None"]),
        (synced(spec="2"), {"a": lower()}, ["patch l1 in a"]),
        (synced(), {"a": None}, ["delete u1 in up, grace 0"]),  # it ended with its copy
        (upper(**LEAVING), {"a": None}, ["delete u1 in up, grace 0"]),
        (synced(), {"a": Unknown("away")}, ["wait"]),
    ],
)
def test_where_an_object_is_only_kept_a_copy_lives_on_and_none_is_created(above, below, lines):
    assert decided(above, below, {"a": Grade.KEPT}) == lines


def test_the_content_of_an_outlined_object_is_read_only_if_a_copy_is_written():
    outlined, settled = upper().outlined(), frozenset({"a"})
    assert actions(outlined, {}, of=SETTINGS) == (plan.Read("up"),)
    assert plan.Read("up") in actions(outlined, {"a": lower()}, of=SETTINGS)
    assert plan.Read("up") not in actions(outlined, {"a": lower()}, of=SETTINGS, in_sync=settled)
    full = {"a": Room(Limits(objects=0), Amounts())}
    [over] = actions(outlined, {}, of=SETTINGS, room=full)
    assert (over.limit, over.needs.bytes) == (Limit.OBJECTS, upper().size)
