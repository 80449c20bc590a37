"""Leader election on a Lease: of many processes with one name at most one works.

The holder stops by its own clock some seconds before another may begin by its own, so clocks need not agree, and a
process that was frozen knows at its first look that it leads no more. What a leader does is left to others.
"""

import asyncio
import contextlib
import dataclasses
import logging
import math
import random as randomness
from collections.abc import Awaitable, Callable
from typing import Any

from hansa.control import informer, store, table
from hansa.kube import client, objects, resources
from hansa.kube import errors as api_errors
from hansa.runtime import clock, errors, metrics, tasks

log = logging.getLogger(__name__)
RELEASE_SECONDS = 3.0  # for giving the lease back at the end; who doesn't manage lets it expire


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: how long a lease is valid for others, when its holder gives up, how often it renews or tries."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not (0 < self.retry < self.renew < self.lease and self.lease >= 1):
            raise errors.HansaError(f"{self} makes no election: it needs 0 < retry < renew < lease, and lease >= 1")


class Election:
    """One candidate for one Lease. The identity must be this process's own."""

    def __init__(
        self,
        name: str,
        *,
        namespace: str,
        identity: str,
        client: client.Client,
        informers: informer.Informers,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        timing: Timing | None = None,
    ) -> None:
        self.identity = identity
        self._key = objects.NamespacedName(namespace, name)
        self._scope = informer.Scope(resources.LEASES, namespace=namespace, fields=f"metadata.name={name}")
        self._client, self._informers, self._clock, self._random = client, informers, clock, random
        self._timing = timing or Timing()
        self._until = -math.inf
        self._seen: tuple[str, float] = ("", 0.0)  # the version of another's lease, and since when we see it
        gauge = metrics.gauge("hansa_leading", "1 while this process is the leader.", labels=["lease"])
        gauge.read(lambda: {(name,): int(self.is_leading)})

    @property
    def is_leading(self) -> bool:
        """Whether no other can lead now. Ask again before each write that must not be done by two."""
        return self._clock.now() < self._until

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Take part until `work` returns. It runs while we lead, is cancelled when we don't, and begins anew."""
        async with self._informers.share(self._scope) as leases:
            while True:
                await self._campaign(leases)
                log.info("leads", extra={"lease": str(self._key), "identity": self.identity})
                if await self._reign(leases, work):
                    return
                log.warning("leads no more", extra={"lease": str(self._key), "identity": self.identity})

    async def _reign(self, leases: store.Store, work: Callable[[], Awaitable[None]]) -> bool:
        working, keeping = asyncio.create_task(_run(work)), asyncio.create_task(self._keep(leases))
        try:
            await asyncio.wait([working, keeping], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            return working.done()
        finally:
            await tasks.cancel(working, keeping)
            await self._release(leases)

    async def _campaign(self, leases: store.Store) -> None:
        """Wait until the lease is ours: woken by each change of it, and by its end."""
        changed = asyncio.Event()
        end = leases.listen(lambda _: changed.set(), table.own_key)
        try:
            while True:
                changed.clear()
                wait = self._seconds_to_wait(leases)
                if wait <= 0:
                    if await self._take(leases):
                        return
                    wait = self._timing.retry * self._random.uniform(1.0, 1.2)
                await _wait(changed, wait)
        finally:
            end()

    def _seconds_to_wait(self, leases: store.Store) -> float:
        if not leases.knowledge.is_complete:
            return self._timing.retry
        lease = leases.get(self._key)
        holder, duration = ("", 0.0) if lease is None else _terms(lease)
        if lease is None or holder in ("", self.identity):
            return 0.0
        if self._seen[0] != lease.version:
            self._seen = (lease.version, self._clock.now())
        return self._seen[1] + duration - self._clock.now()

    async def _keep(self, leases: store.Store) -> None:
        """Renew until it is too late, whatever the server does; also when another took it."""
        while self._holds(leases):
            await self._clock.sleep(min(self._timing.retry, self._until - self._clock.now()))
            if self._holds(leases):  # if not, writing would take it from another, who leads
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._until - self._clock.now()):
                        await self._take(leases)
        self._until = -math.inf

    def _holds(self, leases: store.Store) -> bool:
        lease = leases.get(self._key)
        return self.is_leading and lease is not None and _terms(lease)[0] == self.identity

    async def _take(self, leases: store.Store) -> bool:
        """Write ourselves into the lease, on condition that it is as we know it."""
        known = leases.get(self._key)
        began = self._clock.now()  # before the request: others count from when the server has it, which is later
        try:
            answer = await self._write(known)
        except api_errors.Conflict:
            await self._read(leases)
            return False
        except api_errors.ApiError as error:
            log.warning("cannot write the lease", extra={"lease": str(self._key), "error": str(error)})
            return False
        leases.observe(answer)
        self._until = began + self._timing.renew
        return self.is_leading  # an answer that took too long, or that we slept over, is worth nothing

    async def _write(self, known: objects.Object | None) -> objects.Object:
        spec = self._spec(known)
        if known is not None:
            return await self._client.update(resources.LEASES, known.with_fields(spec=spec))
        metadata = {"namespace": self._key.namespace, "name": self._key.name}
        head = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
        return await self._client.create(
            resources.LEASES, objects.Object.of({**head, "metadata": metadata, "spec": spec})
        )

    def _spec(self, known: objects.Object | None) -> dict[str, Any]:
        former = known.spec if known else {}
        now = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease),
            "renewTime": now,
            "acquireTime": former.get("acquireTime", now),
            "leaseTransitions": former.get("leaseTransitions", 0),
        }
        if known and former.get("holderIdentity") != self.identity:
            spec |= {"acquireTime": now, "leaseTransitions": spec["leaseTransitions"] + 1}
        return former | spec

    async def _read(self, leases: store.Store) -> None:
        """The watch may lag behind: look for ourselves."""
        try:
            leases.observe(await self._client.get(resources.LEASES, self._key.name, namespace=self._key.namespace))
        except api_errors.ApiError as error:
            log.warning("cannot read the lease", extra={"lease": str(self._key), "error": str(error)})

    async def _release(self, leases: store.Store) -> None:
        """Give back what is still ours, so that another need not wait for its end."""
        lease = leases.get(self._key)
        if lease is None or not self._holds(leases):
            return
        self._until = -math.inf
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                spec = lease.spec | {"holderIdentity": "", "leaseDurationSeconds": 1}
                leases.observe(await self._client.update(resources.LEASES, lease.with_fields(spec=spec)))
        except (TimeoutError, api_errors.ApiError) as error:
            log.warning("cannot give the lease back", extra={"lease": str(self._key), "error": str(error)})


def _terms(lease: objects.Object) -> tuple[str, float]:
    spec = lease.spec
    return spec.get("holderIdentity") or "", float(spec.get("leaseDurationSeconds") or 0)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
