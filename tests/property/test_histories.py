"""Decisions on random histories of both sides, with kills and outages."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.kube.resource import Resource
from hansa.model import decision, keys, plan
from hansa.model.pair import Grade, Key
from random_pairs import (
    KINDS,
    LABELS,
    LOWERS,
    MODE,
    NAME,
    SPECS,
    check_end,
    intents_of,
    manifests,
    statuses,
    wanted,
)
from worlds import HOME, NODE, World


# What may happen to the two sides while Hansa works. Each takes the world and some luck.
def user_makes(world: World, draw: st.DataObject) -> None:
    world.home.create(draw.draw(manifests()))


def user_edits(world: World, draw: st.DataObject) -> None:
    if world.upper is not None:
        labels = {"labels": dict.fromkeys(world.upper.labels) | draw.draw(LABELS)}
        world.home.patch(world.upper, {"metadata": labels, "spec": draw.draw(SPECS)})


def user_deletes(world: World, draw: st.DataObject) -> None:
    if world.upper is not None:
        world.home.delete(world.upper, draw.draw(st.sampled_from((None, 0, 5))))


def it_is_placed_elsewhere(world: World, draw: st.DataObject) -> None:
    world.intents = draw.draw(intents_of(world.key.resource))


def lower_status_changes(world: World, draw: st.DataObject) -> None:
    """A lower object has a new status; a finished one stays finished."""
    cluster = draw.draw(st.sampled_from(LOWERS))
    lower = world.lower(cluster)
    if lower is not None and lower.status.get("phase") not in ("Succeeded", "Failed"):
        world.servers[cluster].patch(lower, {"status": draw.draw(statuses())}, "status")


def lower_is_deleted(world: World, draw: st.DataObject) -> None:
    cluster = draw.draw(st.sampled_from(LOWERS))
    if lower := world.lower(cluster):
        world.servers[cluster].delete(lower, draw.draw(st.sampled_from((None, 0))))


def foreign_object_takes_the_name(world: World, draw: st.DataObject) -> None:
    cluster = draw.draw(st.sampled_from(LOWERS))
    if cluster not in world.copies():
        world.servers[cluster].create(draw.draw(manifests()))


def foreign_object_leaves(world: World, draw: st.DataObject) -> None:
    for cluster in world.foreign():
        lower = world.lower(cluster)
        assert lower is not None
        world.servers[cluster].delete(lower, 0)


def time_passes(world: World, draw: st.DataObject) -> None:
    for cluster in LOWERS:
        world.servers[cluster].pass_time()


def a_cluster_is_unreachable(world: World, draw: st.DataObject) -> None:
    world.hidden.add(draw.draw(st.sampled_from((HOME, *LOWERS))))


def the_node_is_created_or_deleted(world: World, draw: st.DataObject) -> None:
    world.nodes ^= {NODE}


def all_clusters_are_reachable(world: World, draw: st.DataObject) -> None:
    world.hidden.clear()


def hansa_works(world: World, draw: st.DataObject) -> None:
    """One round, perhaps killed in the middle; each write is checked against the state that it meets."""
    for action in decision.decide(world.pair(), MODE).writes[: draw.draw(st.integers(0, 4))]:
        check_write(world, action)
        world.write(action)


HISTORY: tuple[Callable[[World, st.DataObject], None], ...] = (
    user_makes,
    user_edits,
    user_deletes,
    it_is_placed_elsewhere,
    lower_status_changes,
    lower_is_deleted,
    foreign_object_takes_the_name,
    foreign_object_leaves,
    time_passes,
    a_cluster_is_unreachable,
    the_node_is_created_or_deleted,
    all_clusters_are_reachable,
    hansa_works,
    hansa_works,
    hansa_works,
)


def check_write(world: World, action: plan.Write) -> None:
    """What must be true of every single write, at any moment."""
    life, upper = KINDS[world.key.resource], world.upper
    assert action.cluster not in world.hidden
    if action.cluster == HOME:
        assert not isinstance(action, plan.Create)
        return
    there = world.lower(action.cluster)
    if not isinstance(action, plan.Create):
        assert there is not None
        assert world.is_ours(there)
        return
    assert upper is not None
    assert there is None
    assert not upper.is_deleting
    assert not life.is_finished(upper), "a finished object runs again"
    assert not MODE.rules[world.key.resource].refusal(upper, world.links[action.cluster]), (
        "a refused object was created"
    )
    if life.runs_once and Grade.CHOSEN in wanted(world).values():
        current = [o for o in world.copies().values() if o.annotations[keys.UPPER_UID] == upper.uid]
        assert not current, "a second copy beside the first"
        assert not life.has_run(upper), "a second copy after the first has run"


@settings(max_examples=300)
@given(st.data(), st.sampled_from(tuple(KINDS)))
def test_any_history_with_kills_and_outages_ends_well(data: st.DataObject, resource: Resource) -> None:
    world = World(MODE, Key(HOME, resource, **NAME), lowers=LOWERS, intents=data.draw(intents_of(resource)))
    user_makes(world, data)
    for event in data.draw(st.lists(st.sampled_from(HISTORY), max_size=30)):
        event(world, data)
    world.hidden.clear()
    world.settle()
    check_end(world)
