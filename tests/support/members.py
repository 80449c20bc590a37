"""Members of a group on simulated clocks that drift, over one store that orders all writes. No API server is imitated.

A request is delayed before and after the store carries it out, or its answer is lost. A member can be frozen: requests
under way go on, and it notices nothing until it is thawed.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from hansa.control.sharding import shards
from hansa.control.sharding.share import TIMING, Peer, Share

STEP = 0.05  # seconds between two looks of a member at its caches and timers
REQUEST_SECONDS = 2.0
WORK_SECONDS = 1.5  # at most, until work for a shard that was lost has ended


@dataclass(slots=True)
class Member:
    """One member; `held` are shards that work has not ended for."""

    share: Share
    rate: float
    version: str = ""
    renew_at: float = 0.0
    is_alive: bool = True
    is_frozen: bool = False
    is_asking: bool = False
    watched: dict[str, Peer] = field(default_factory=dict)
    held: dict[int, float] = field(default_factory=dict)  # until when, by global time

    @property
    def may_act(self) -> bool:
        """Whether it runs."""
        return self.is_alive and not self.is_frozen


class Group:
    """All members, and the Leases in the order of their writes."""

    def __init__(self, seed: int, *, drift: float = 0.15, slow: float = 0.1) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.members: dict[str, Member] = {}
        self.leases: dict[str, Peer] = {}
        self.writes = 0
        self._drift, self._slow = drift, slow
        self._numbers = itertools.count(1)
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def join(self) -> str:
        """Add a member."""
        name = f"member-{next(self._numbers)}"
        rate = self.random.uniform(1 - self._drift, 1 + self._drift)
        self.members[name] = Member(Share(name, TIMING), rate)
        self._at(0.0, lambda: self._step(name))
        return name

    def run(self, seconds: float, check: Callable[[], None] = lambda: None) -> None:
        """Let time pass; `check` is called after everything that happens."""
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, act = heapq.heappop(self._due)
            act()
            check()
        self.now = end

    def serving(self, shard: int) -> list[str]:
        """The members that may write for a shard, frozen ones included."""
        alive = [(name, one) for name, one in self.members.items() if one.is_alive]
        return [name for name, one in alive if one.share.may_serve(shard, self.local(one))]

    def local(self, member: Member) -> float:
        """The time of a member's own clock."""
        return self.now * member.rate

    def _at(self, delay: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay, next(self._numbers), act))

    def _delay(self) -> float:
        is_slow = self.random.random() < self._slow
        return self.random.uniform(0.0, 4.0) if is_slow else self.random.uniform(0.0, 0.02)

    def _step(self, name: str) -> None:
        member = self.members[name]
        if not member.is_alive:
            return
        self._at(STEP, lambda: self._step(name))
        if self.random.random() < 0.5:  # the watch lags behind
            member.watched = {key: peer for key, peer in self.leases.items() if key != name}
        if member.is_frozen:
            return
        now, share = self.local(member), member.share
        before = share.served
        if share.claimed and name not in self.leases:
            share.lost(now)
        share.observe(member.watched.values(), now)
        for shard in shards.each(before & ~share.served):
            member.held[shard] = self.now + self.random.uniform(0.0, WORK_SECONDS)
        member.held = {shard: until for shard, until in member.held.items() if until > self.now}
        if not member.is_asking:
            self._ask(name, member)

    def _ask(self, name: str, member: Member) -> None:
        share, now = member.share, self.local(member)
        claims = share.target | sum(1 << shard for shard in member.held)
        if now >= member.renew_at or claims != share.claimed:
            self._renew(name, member, claims)
        elif share.is_valid(now) and share.free(now):
            self._verify(name, member)

    def _renew(self, name: str, member: Member, claims: int) -> None:
        began, version = self.local(member), member.version
        member.is_asking, member.renew_at = True, began + TIMING.retry
        member.share.attempt(claims)
        ended: list[None] = []

        def store() -> None:
            found = self.leases.get(name)
            if (found.version if found else "") == version:
                self.writes += 1
                peer = Peer(name, str(next(self._numbers)), claims, TIMING.lease, is_leaving=member.share.is_leaving)
                self.leases[name] = peer
                self._at(self._delay(), lambda: answer(peer.version))
            else:
                self._at(self._delay(), refused)

        def answer(new: str) -> None:
            if member.may_act and not ended:
                ended.append(None)
                member.version, member.is_asking = new, False
                member.share.renewed(claims, began=began, now=self.local(member))
            elif member.is_frozen:
                self._at(STEP, lambda: answer(new))

        def refused() -> None:
            if not ended:
                ended.append(None)
                member.is_asking = False
                found = self.leases.get(name)
                member.version, member.renew_at = found.version if found else "", 0.0

        def expire() -> None:
            if not ended:  # it may still be stored later, and is read again then
                refused()

        self._at(self._delay(), store)
        self._at(REQUEST_SECONDS / member.rate, expire)

    def _verify(self, name: str, member: Member) -> None:
        asked = self.local(member)
        member.is_asking = True

        def read() -> None:
            found = [peer for key, peer in self.leases.items() if key != name]
            self._at(self._delay(), lambda: answer(found))

        def answer(found: list[Peer]) -> None:
            if member.is_frozen:
                self._at(STEP, lambda: answer(found))
                return
            member.is_asking = False
            if member.is_alive:
                member.share.verify(found, asked=asked, now=self.local(member))

        self._at(self._delay(), read)

    def leave(self, name: str) -> None:
        """End a member in order: it gives up its shards, and deletes its Lease when the work has ended."""
        member = self.members[name]
        member.share.is_leaving = True

        def finish() -> None:
            if not member.is_alive:
                return
            if member.is_frozen or member.held or member.share.served:
                self._at(STEP, finish)
                return
            member.is_alive = False
            self.leases.pop(name, None)

        self._at(WORK_SECONDS, finish)

    def kill(self, name: str) -> None:
        """End a member at once."""
        self.members[name].is_alive = False

    def freeze(self, name: str, seconds: float) -> None:
        """Freeze a member for a while."""
        member = self.members[name]
        member.is_frozen = True

        def thaw() -> None:
            member.is_frozen = False

        self._at(seconds, thaw)
