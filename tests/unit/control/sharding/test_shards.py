"""Which member owns which shard: all have about as many, and few move."""

import itertools

import pytest

from hansa.control.sharding import shards

MEMBERS = [f"syncer-{number}" for number in range(10)]


def by_member(members):
    return {member: shards.owned(member, members) for member in members}


def test_each_shard_has_exactly_one_owner():
    found = by_member(MEMBERS).values()
    assert sum(one.bit_count() for one in found) == shards.SHARDS
    assert not any(a & b for a, b in itertools.combinations(found, 2))


def test_an_only_member_owns_all():
    assert shards.owned("one", ["one"]) == shards.ALL


def test_members_own_about_as_many():
    share = shards.SHARDS / len(MEMBERS)
    assert all(0.7 * share < one.bit_count() < 1.3 * share for one in by_member(MEMBERS).values())


def test_a_member_that_leaves_moves_only_its_own_shards():
    before, after = by_member(MEMBERS), by_member(MEMBERS[1:])
    assert all(before[member] & ~after[member] == 0 for member in MEMBERS[1:])


def test_a_member_that_joins_takes_only_what_it_owns_then():
    before, after = by_member(MEMBERS), by_member([*MEMBERS, "new"])
    moved = sum((before[member] & ~after[member]).bit_count() for member in MEMBERS)
    assert moved == after["new"].bit_count() < 1.3 * shards.SHARDS / 11


def test_keys_are_spread_over_all_members():
    owners = by_member(MEMBERS)
    keys = [shards.shard_of(f"default-{number:05x}-tenant-{number}") for number in range(1000)]
    counts = [sum(1 for shard in keys if owned >> shard & 1) for owned in owners.values()]
    assert sum(counts) == 1000
    assert all(60 < count < 150 for count in counts), counts


@pytest.mark.parametrize("found", [0, 1, 1 << 1023, shards.ALL])
def test_text_gives_the_same_shards(found):
    assert shards.parsed(shards.text(found)) == found
    assert sum(1 << one for one in shards.each(found)) == found


@pytest.mark.parametrize("text", ["", "7", "512:1", "1024:x", "1024:-1", "1024:" + "f" * 257])
def test_text_of_another_version_claims_all(text):
    assert shards.parsed(text) == shards.ALL
