"""Random groups of members that join, leave, die and freeze, with clocks that drift: a shard never has two owners."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.control.sharding import shards
from members import TIMING, WORK_SECONDS, Group

PROBES = tuple(range(0, shards.SHARDS, 97))  # shards that are looked at
MOST = 5
BOUND = TIMING.lease + WORK_SECONDS + 3.5  # seconds until each shard is served again


def check_one_owner(group):
    def check():
        for shard in PROBES:
            assert len(group.serving(shard)) <= 1, f"shard {shard} at {group.now}: {group.serving(shard)}"

    return check


def unserved(group):
    return [shard for shard in PROBES if not group.serving(shard)]


@given(st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_a_shard_never_has_two_owners_whatever_happens(seed):
    play(seed, rounds=12)


@pytest.mark.soak
@given(st.integers(0, 2**32))
@settings(max_examples=600, deadline=None)
def test_a_shard_never_has_two_owners_in_long_histories(seed):
    play(seed, rounds=60)


def play(seed, *, rounds):
    chance, group = random.Random(seed), Group(seed)
    check = check_one_owner(group)
    for _ in range(chance.randint(1, 3)):
        group.join()
    for _ in range(rounds):
        group.run(chance.uniform(0.0, 8.0), check)
        alive = [name for name, one in group.members.items() if one.is_alive]
        match chance.choice(("join", "leave", "kill", "freeze", "freeze")):
            case "join" if len(alive) < MOST:
                group.join()
            case "leave" if len(alive) > 1:
                group.leave(chance.choice(alive))
            case "kill" if len(alive) > 1:
                group.kill(chance.choice(alive))
            case "freeze" if alive:
                group.freeze(chance.choice(alive), chance.uniform(0.0, 25.0))
    group.run(60.0, check)


@given(st.integers(0, 2**32), st.sampled_from(["kill", "freeze", "leave", "join"]))
@settings(max_examples=20, deadline=None)
def test_every_shard_is_served_again_within_the_bound(seed, change):
    group = Group(seed, drift=0.02, slow=0.0)
    names = [group.join() for _ in range(3)]
    group.run(BOUND)
    assert not unserved(group), "after the start"
    match change:
        case "kill":
            group.kill(names[0])
        case "freeze":
            group.freeze(names[0], 60.0)
        case "leave":
            group.leave(names[0])
        case "join":
            group.join()
    group.run(WORK_SECONDS + 3.0 if change in ("leave", "join") else BOUND)
    assert not unserved(group), f"after {change}"


def test_a_member_that_was_frozen_writes_nothing_for_shards_that_it_lost():
    group = Group(1, drift=0.0, slow=0.0)
    frozen, *_ = [group.join() for _ in range(3)]
    group.run(BOUND)
    lost = [shard for shard in PROBES if group.serving(shard) == [frozen]]
    assert lost
    group.freeze(frozen, 30.0)
    group.run(29.0, check_one_owner(group))
    assert all(group.serving(shard) not in ([], [frozen]) for shard in lost)
    group.run(20.0, check_one_owner(group))
    assert [shard for shard in PROBES if group.serving(shard) == [frozen]] == lost, "it is a member again"


def test_leases_are_written_once_in_a_renewal_period_and_not_for_each_shard():
    group = Group(2, drift=0.0, slow=0.0)
    for _ in range(10):
        group.join()
    group.run(20.0)
    before = group.writes
    group.run(60.0)
    assert group.writes - before <= 10 * 60 / TIMING.retry
    before = group.writes
    group.kill("member-1")
    group.run(BOUND)
    assert group.writes - before <= 9 * (BOUND / TIMING.retry + 2)
