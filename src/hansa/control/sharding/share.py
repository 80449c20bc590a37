"""What one member of a group may serve, by the Leases of all members. Pure: the times are its own monotonic clock's.

A member claims shards in its Lease, and serves one when a list that it read after the claim has no other claim on it
that is valid. Two members that claim the same shard see each other's claims, so that at most one serves it. A claim is
withdrawn when the work has ended. It expires when its Lease was not renewed for the lease duration after another member
saw it first; its own member stops at the renew deadline, which is earlier, and verifies its claims again afterwards.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hansa.control.lease_timing import LeaseTiming
from hansa.control.sharding import shards

TIMING = LeaseTiming(lease=8.0, renew=5.0, retry=2.0)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another member by its Lease: what it claims, and whether it is about to leave."""

    name: str
    version: str
    claims: int
    seconds: float  # its lease duration
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    peer: Peer
    since: float  # when this version was seen first

    @property
    def expires(self) -> float:
        return self.since + self.peer.seconds


class Share:
    """The shards of one member. `claimed` are those in its Lease, `served` those that work runs for.

    Of those, it may write only for the ones that are verified, and only while its Lease is valid.
    """

    def __init__(self, name: str, timing: LeaseTiming) -> None:
        self.name = name
        self.is_leaving, self.is_blocked = False, False
        self.claimed, self.served, self.target = 0, 0, 0
        self._timing = timing
        self._verified = 0
        self._until = -math.inf
        self._peers: dict[str, _Seen] = {}

    @property
    def until(self) -> float:
        """When this member has to stop, unless it renews its Lease before."""
        return self._until

    @property
    def unverified(self) -> int:
        """The shards of this member that it may not serve yet."""
        return self.target & ~self._verified

    def is_valid(self, now: float) -> bool:
        """Whether the Lease of this member was renewed in time."""
        return now < self._until

    def may_serve(self, shard: int, now: float) -> bool:
        """Whether no other member can serve this shard now."""
        return now < self._until and bool(self._verified >> shard & 1)

    def members(self, now: float) -> list[str]:
        """The members that shards are given to, this one included unless it leaves."""
        others = [seen.peer.name for seen in self._live(now) if not seen.peer.is_leaving]
        return sorted(others if self.is_leaving else [*others, self.name])

    def expired(self, now: float, *, seconds: float) -> list[Peer]:
        """The others whose Lease expired so many seconds ago."""
        return [seen.peer for seen in self._peers.values() if now >= seen.expires + seconds]

    def next_expiry(self, now: float) -> float:
        """When the next Lease of another member expires."""
        return min((seen.expires for seen in self._live(now)), default=math.inf)

    def observe(self, peers: Iterable[Peer], now: float) -> None:
        """Take the current Leases of the others, and drop shards that are not this member's any more."""
        known = self._peers
        self._peers = {peer.name: _seen(peer, known.get(peer.name), now) for peer in peers}
        self.update(now)

    def update(self, now: float) -> None:
        """Compute the shards of this member again: others may have expired."""
        is_out = self.is_leaving or self.is_blocked
        self.target = 0 if is_out else shards.owned(self.name, self.members(now))
        self.served &= self.target
        self._verified &= self.target

    def attempt(self, claims: int) -> None:
        """A request with these claims is sent. It counts also if it is never answered."""
        self.claimed &= claims

    def renewed(self, claims: int, *, began: float, now: float) -> None:
        """A renewal with these claims was stored, by a request that began at `began`."""
        if self._until <= now:
            self._suspend(now)
        self.claimed, self._until = claims, began + self._timing.renew

    def lost(self, now: float) -> None:
        """The Lease of this member is gone."""
        self._suspend(now)
        self.claimed, self._until = 0, -math.inf

    def free(self, at: float) -> int:
        """The shards that this member claims and that no other may serve, as far as known at a time."""
        taken = 0
        for seen in self._live(at):
            taken |= seen.peer.claims
        return self.target & self.claimed & ~self._verified & ~taken

    def verify(self, peers: Iterable[Peer], *, asked: float, now: float) -> None:
        """Serve what is free by a list of all other Leases that was requested at `asked`, after the current claims.

        A Lease counts as expired only if it was at `asked`: it may have been renewed after the list was read.
        """
        self.observe(peers, now)
        found = self.free(asked)
        self._verified |= found
        self.served |= found

    def _suspend(self, now: float) -> None:
        """Stop writing until all claims are verified again. What was not seen meanwhile says nothing about others."""
        self._verified = 0
        self._peers = {name: _Seen(seen.peer, now) for name, seen in self._peers.items()}

    def _live(self, now: float) -> list[_Seen]:
        return [seen for seen in self._peers.values() if now < seen.expires]


def _seen(peer: Peer, before: _Seen | None, now: float) -> _Seen:
    return before if before is not None and before.peer.version == peer.version else _Seen(peer, now)
