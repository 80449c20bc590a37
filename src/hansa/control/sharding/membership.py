"""A member of a group of replicas that share the shards of their work: its Lease, and what it may serve by all Leases.

The Leases are watched. One is written every few seconds by each member, and once more when its claims change. Which
shards a member may serve is decided by `share`; what is done for them is left to the caller.
"""

import asyncio
import contextlib
import functools
import logging
import random as randomness
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager

from hansa.control import informer, store, table
from hansa.control.lease_timing import LeaseTiming
from hansa.control.sharding import shards
from hansa.control.sharding.guard import Guard
from hansa.control.sharding.leases import Group
from hansa.control.sharding.member_lease import MemberLease
from hansa.control.sharding.share import TIMING, Peer, Share
from hansa.kube import client, errors, objects, resources
from hansa.runtime import clock, listeners, metrics, tasks

log = logging.getLogger(__name__)
LEAST_SECONDS = 0.1  # between two changes of the claims, and between two lists: changes often come together
RETRY_SECONDS = 0.5  # after a failed list
FORGET_SECONDS = 0.5  # after its expiry, a Lease is deleted: a new member would wait for it from when it sees it
Concerns = Callable[[str], bool]  # whether a key is concerned


class Membership:
    """One member. The identity is the name of its Lease, and must be unique to this process."""

    def __init__(
        self,
        group: Group,
        *,
        identity: str,
        client: client.Client,
        informers: informer.Informers,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        timing: LeaseTiming = TIMING,
    ) -> None:
        self.identity = identity
        self._group, self._timing = group, timing
        self._client, self._informers, self._clock, self._random = client, informers, clock, random
        self._scope = informer.Scope(resources.LEASES, namespace=group.namespace, labels=group.selector)
        self._lease = MemberLease(group, identity, client, clock=clock, metrics=metrics)
        self._share = Share(identity, self._timing)
        self._changed, self._left = asyncio.Event(), asyncio.Event()
        self._guard = Guard(self._changed.set)
        self._listeners: listeners.Listeners[Callable[[Concerns], None]] = listeners.Listeners()
        self._renew_at = self._claim_at = self._verify_at = 0.0
        self._members: list[str] = []
        self._waiting: dict[int, float] = {}  # since when each shard of this member waits for its former owner
        self._measure(metrics)

    def owns(self, key: str) -> bool:
        """Whether work for this key runs here. It may write only while `may_write`."""
        return bool(self._share.served >> shards.shard_of(key) & 1)

    def may_write(self, key: str) -> bool:
        """Whether no other member can serve this key now."""
        return self._share.may_serve(shards.shard_of(key), self._clock.now())

    def hold(self, key: str) -> AbstractContextManager[None]:
        """Keep other members from serving this key until the work inside has ended."""
        return self._guard.hold(shards.shard_of(key))

    def write(self, key: str) -> AbstractAsyncContextManager[None]:
        """Write for this key inside, as `hold`. Raises `Unreachable` when this member has to stop."""
        return self._guard.write(shards.shard_of(key), functools.partial(self.may_write, key))

    def listen(self, notify: Callable[[Concerns], None]) -> Callable[[], None]:
        """Call `notify` when keys are gained or lost, with which ones. The returned function removes it."""
        return self._listeners.add(notify)

    def leave(self) -> None:
        """Give up all keys, as soon as nothing holds them; the Lease is deleted when `lead` ends."""
        self._share.is_leaving = True
        self._renew_at = 0.0
        self._changed.set()

    async def left(self) -> None:
        """Wait until this member has given up all keys after `leave`."""
        await self._left.wait()

    def block(self, is_blocked: bool) -> None:
        """Serve no key while this is set."""
        if self._share.is_blocked is not is_blocked:
            self._share.is_blocked = is_blocked
            self._changed.set()

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Take part until `work` returns. It runs all the time; which keys it may serve changes."""
        async with self._informers.share(self._scope) as leases:
            end = leases.listen(lambda _: self._changed.set(), table.own_key)
            working, following = asyncio.create_task(_run(work)), asyncio.create_task(self._follow(leases))
            try:
                await asyncio.wait([working, following], return_when=asyncio.FIRST_COMPLETED)
                (working if working.done() else following).result()
            finally:
                end()
                await tasks.cancel(working, following)
                self._guard.close()
                await self._lease.release(leases)

    async def _follow(self, leases: store.Store) -> None:
        while True:
            self._changed.clear()
            if leases.freshness.has_synced:
                self._observe(leases)
            if self._clock.now() >= self._write_at():
                await self._renew(leases)
            if self._clock.now() >= self._list_at():
                await self._verify(leases)
            if self._share.is_leaving and not self._claims():
                self._left.set()
            await self._forget()
            await self._wait()

    def _observe(self, leases: store.Store) -> None:
        now = self._clock.now()
        if self._share.claimed and leases.get(self._lease.key) is None:
            log.warning("member's Lease is gone", extra={"lease": str(self._lease.key)})
            self._share.lost(now)
            self._guard.stop_after(0.0)
            self._renew_at = now
        with self._noticed():
            self._share.observe(self._peers(leases.values()), now)

    def _peers(self, found: Iterable[objects.Object]) -> list[Peer]:
        return [self._group.peer(one) for one in found if one.name != self.identity]

    def _claims(self) -> int:
        """What the Lease should claim: the shards of this member, and those that work still holds."""
        return self._share.target | self._guard.held

    def _write_at(self) -> float:
        if self._claims() == self._share.claimed:
            return self._renew_at
        return min(self._renew_at, self._claim_at)

    def _list_at(self) -> float:
        now = self._clock.now()
        return self._verify_at if self._share.is_valid(now) and self._share.free(now) else float("inf")

    async def _renew(self, leases: store.Store) -> None:
        began, claims = self._clock.now(), self._claims()  # others count from when the server stored it, which is later
        self._share.attempt(claims)
        is_written = await self._lease.write(
            leases,
            claims,
            is_leaving=self._share.is_leaving,
            seconds=self._timing.lease,
            deadline=self._timing.retry,
        )
        self._claim_at = began + LEAST_SECONDS
        self._renew_at = began + self._timing.retry * (self._random.uniform(0.8, 1.0) if is_written else 0.25)
        if is_written:
            now = self._clock.now()
            if not self._share.is_valid(now) and self._share.served:
                log.warning("renewed too late, verifying all shards", extra={"lease": str(self._lease.key)})
            self._share.renewed(claims, began=began, now=now)
            self._guard.stop_after(self._share.until - now)

    async def _verify(self, leases: store.Store) -> None:
        """List the Leases, which the watch may not have delivered yet, and serve what no other member claims."""
        asked = self._clock.now()
        self._verify_at = asked + LEAST_SECONDS
        try:
            async with asyncio.timeout(self._timing.retry):
                selector = self._group.selector
                page = await self._client.list(resources.LEASES, namespace=self._scope.namespace, labels=selector)
        except (TimeoutError, errors.ApiError) as error:
            log.warning("Leases not listed", extra={"group": self._group.name, "error": str(error) or "timeout"})
            self._verify_at = self._clock.now() + RETRY_SECONDS
            return
        for one in page.items:
            leases.observe(one)
        with self._noticed():
            self._share.verify(self._peers(page.items), asked=asked, now=self._clock.now())

    async def _forget(self) -> None:
        """Delete Leases of members that are gone; one member does it, and another one if that is late.

        The next renewal waits for this: one request at a time, with the deadline of a renewal.
        """
        now = self._clock.now()
        is_first = self._members[:1] == [self.identity]
        expired = self._share.expired(now, seconds=FORGET_SECONDS * (1 if is_first else 3))
        if expired and self._share.is_valid(now):
            await self._lease.forget(expired[0], deadline=self._timing.retry)

    def _forget_at(self, now: float) -> float:
        return now + FORGET_SECONDS if self._share.expired(now, seconds=0.0) else float("inf")

    async def _wait(self) -> None:
        now = self._clock.now()
        until = min(self._write_at(), self._list_at(), self._share.next_expiry(now), self._forget_at(now))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, until - self._clock.now())):
                await self._changed.wait()

    @contextlib.contextmanager
    def _noticed(self) -> Iterator[None]:
        """Report what changes inside."""
        before, was_free = self._share.served, self._share.unverified
        yield
        now, share = self._clock.now(), self._share
        for shard in shards.each(share.unverified & ~was_free):
            self._waiting[shard] = now
        for shard in [one for one in self._waiting if not share.unverified >> one & 1]:
            began = self._waiting.pop(shard)
            if share.may_serve(shard, now):
                self._handovers.observe(now - began)
        if (members := share.members(now)) != self._members:
            self._members = members
            log.info("members changed", extra={"group": self._group.name, "members": " ".join(members)})
        if changed := before ^ share.served:
            fields = {"group": self._group.name, "serving": share.served.bit_count(), "of": shards.SHARDS}
            log.info("shards changed", extra=fields | {"gained": (changed & share.served).bit_count()})
            for notify in self._listeners:
                notify(lambda key: bool(changed >> shards.shard_of(key) & 1))

    def _measure(self, metrics: metrics.Registry) -> None:
        name, share, clock = self._group.name, self._share, self._clock
        owned = metrics.gauge("hansa_shards_owned", "Shards that this replica serves.", labels=["group"])
        owned.read(lambda: {(name,): share.served.bit_count() if share.is_valid(clock.now()) else 0})
        live = metrics.gauge("hansa_members_live", "Replicas that share the shards.", labels=["group"])
        live.read(lambda: {(name,): len(share.members(clock.now()))})
        handovers = metrics.histogram(
            "hansa_handover_seconds", "Time until a shard that was given to this replica is served.", labels=["group"]
        )
        self._handovers = handovers.labels(name)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
