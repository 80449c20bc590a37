"""Shards of keys, and which member of a group owns which shard. Pure.

A set of shards is an integer with a bit for each, so that unions and differences of a thousand of them cost nothing.
The owner of a shard is chosen by rendezvous hashing: when a member comes or goes, only its own shards move.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

SHARDS: Final = 1024  # many more than members, so that these have about equal shares
ALL: Final = (1 << SHARDS) - 1
_TEXT: Final = re.compile(rf"{SHARDS}:([0-9a-f]{{1,{SHARDS // 4}}})")
_SIZE: Final = 8  # bytes of a hash


def shard_of(key: str) -> int:
    """The shard of a key."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=_SIZE).digest()) % SHARDS


def owned(member: str, members: Iterable[str]) -> int:
    """The shards of a member, which is one of the members."""
    return _owned(member, frozenset(members))


@functools.lru_cache(maxsize=256)
def _owned(member: str, members: frozenset[str]) -> int:
    mine = _weights(member)
    others = [_weights(name) for name in members - {member}]
    found = 0
    for shard, weight in enumerate(mine):
        if all(weight > other[shard] for other in others):
            found |= 1 << shard
    return found


def each(shards: int) -> Iterator[int]:
    """The numbers of a set of shards."""
    while shards:
        lowest = shards & -shards
        yield lowest.bit_length() - 1
        shards ^= lowest


def text(shards: int) -> str:
    """A set of shards as text, with the number of all shards."""
    return f"{SHARDS}:{shards:x}"


def parsed(found: str) -> int:
    """The set of shards in a text; all if it is not one of ours, since its writer may serve any of them."""
    match = _TEXT.fullmatch(found)
    return ALL if match is None else int(match[1], 16)


@functools.lru_cache(maxsize=256)
def _weights(member: str) -> tuple[bytes, ...]:
    """The weights of a member for all shards; the name is a part, so that no two are equal."""
    name = member.encode()
    return tuple(
        hashlib.blake2b(b"%d %s" % (shard, name), digest_size=_SIZE).digest() + name for shard in range(SHARDS)
    )
