"""Decisions, applied until nothing changes, on random pairs."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import decision, keys, plan
from hansa.model.pair import Unknown
from random_pairs import (
    KINDS,
    LOWERS,
    MODE,
    check_end,
    store,
    worlds,
)
from worlds import HOME, World


def shape(world: World) -> dict[str, Any]:
    """The end without the numbers that depend on the way."""

    def bare(obj: Object | None) -> dict[str, Any] | None:
        if obj is None:
            return None
        plain = obj.with_metadata(resource_version="", uid="" if world.is_ours(obj) else obj.uid).to_dict()
        plain["metadata"].get("annotations", {}).pop(keys.LOWER_UID, None)
        if obj.is_deleting:  # its last status may be lost, the final phase must not
            plain["status"] = KINDS[world.key.resource].is_finished(obj) and obj.status["phase"]
        return plain

    return {HOME: bare(world.upper)} | {cluster: bare(world.lower(cluster)) for cluster in LOWERS}


def clone(world: World) -> World:
    assert not isinstance(world.intents, Unknown)
    other = World(world.mode, world.key, lowers=world.lowers, intents=world.intents)
    other.nodes = world.nodes
    for name, server in world.servers.items():
        for obj in server.objects.values():
            store(other.servers[name], obj, obj["metadata"]["uid"])
    return other


@given(worlds())
def test_plans_reach_an_end_where_all_is_as_it_should_be(world: World) -> None:
    world.settle(most=8)
    check_end(world)
    assert decision.decide(world.pair(), MODE).writes == ()


@given(worlds(), st.sets(st.sampled_from((HOME, *LOWERS))))
def test_equal_pairs_have_equal_plans(world: World, hidden: set[str]) -> None:
    other = clone(world)
    world.hidden = other.hidden = hidden
    first, second = world.pair(), other.pair()
    assert first == second
    assert decision.decide(first, MODE) == decision.decide(second, MODE)


@given(worlds(), st.lists(st.integers(0, 2), max_size=12))
def test_a_crash_between_any_two_writes_leads_to_the_same_end(world: World, crashes: list[int]) -> None:
    straight = clone(world)
    straight.settle(most=8)
    for writes_before_crash in crashes:
        world.round(at_most=writes_before_crash)
    world.settle(most=8)
    assert shape(world) == shape(straight)


@given(worlds(), st.sets(st.sampled_from((HOME, *LOWERS)), min_size=1))
def test_nothing_is_concluded_from_what_cannot_be_seen(world: World, hidden: set[str]) -> None:
    world.hidden = hidden
    planned = decision.decide(world.pair(), MODE)
    writes = planned.writes
    assert not [a for a in writes if a.cluster in hidden]
    if HOME in hidden:
        assert not writes
    assert not isinstance(world.intents, Unknown)
    if hidden & world.intents.keys():
        assert not [a for a in writes if a.cluster == HOME and isinstance(a, plan.Delete)]
    seen = clone(world)
    if HOME not in hidden:
        would = decision.decide(seen.pair(), MODE).writes
        assert {(type(a), a.cluster) for a in writes} <= {(type(a), a.cluster) for a in would}


@given(worlds())
def test_nothing_is_written_while_it_is_unknown_where_an_object_belongs(world: World) -> None:
    world.intents = Unknown("the pods are not listed yet")
    planned = decision.decide(world.pair(), MODE).writes
    if world.upper is not None and not world.upper.is_deleting:
        assert planned == ()
    else:
        assert {type(a) for a in planned} <= {plan.Delete}
        assert HOME not in {a.cluster for a in planned}


@given(worlds(), st.sets(st.sampled_from(LOWERS)))
def test_nothing_is_created_before_what_it_waits_for(world: World, waiting: set[str]) -> None:
    world.blocked = dict.fromkeys(waiting, "configmaps shop/settings has to be there first")
    world.settle(most=8)
    assert not [a for a in world.writes if isinstance(a, plan.Create) and a.cluster in waiting]
    world.blocked = {}
    world.settle(most=8)
    check_end(world)


@given(worlds(), st.sets(st.sampled_from(LOWERS)), st.booleans())
def test_every_pair_has_an_answer(world: World, unlinked: set[str], is_kind_known: bool) -> None:
    world.linked -= unlinked
    key = world.key if is_kind_known else world.key._replace(resource=resources.LEASES)
    sides = {name: world.servers[name].get(world.upper.key if world.upper else ("shop", "web-0")) for name in LOWERS}
    pair = dataclasses.replace(World.pair(clone(world)), key=key, links=world.links, lowers=sides)
    writes = decision.decide(pair, MODE).writes
    assert not [a for a in writes if a.cluster in unlinked]
    assert is_kind_known or not writes
