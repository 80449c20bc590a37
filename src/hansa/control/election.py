"""Leader election on a Lease: at most one of the candidates runs the work.

The holder stops some seconds before another candidate may acquire the lease, each measured by its own clock, so clocks
need not agree, and a process that was suspended finds out at its next check. The work is left to the caller.
"""

import asyncio
import contextlib
import logging
import math
import random as randomness
from collections.abc import Awaitable, Callable
from typing import Any

from hansa.control import informer, store, table
from hansa.control.lease_timing import LeaseTiming
from hansa.kube import client, objects, resources
from hansa.kube import errors as api_errors
from hansa.runtime import clock, metrics, tasks, timestamps

log = logging.getLogger(__name__)
TIMING = LeaseTiming(lease=15.0, renew=10.0, retry=2.0)
RELEASE_SECONDS = 3.0  # for releasing the lease at the end; after that it expires by itself


class Election:
    """One candidate for one Lease. The identity must be unique to this process."""

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
        timing: LeaseTiming = TIMING,
    ) -> None:
        self.identity = identity
        self._key = objects.NamespacedName(namespace, name)
        self._scope = informer.Scope(resources.LEASES, namespace=namespace, fields=f"metadata.name={name}")
        self._client, self._informers, self._clock, self._random = client, informers, clock, random
        self._timing = timing
        self._until = -math.inf
        self._seen: tuple[str, float] = ("", 0.0)  # the version of another holder's lease, and when it was first seen
        gauge = metrics.gauge("hansa_leading", "1 while this process is the leader.", labels=["lease"])
        gauge.read(lambda: {(name,): int(self.is_leading)})

    @property
    def is_leading(self) -> bool:
        """Whether no other candidate can lead now. Check it before each write that only the leader may do."""
        return self._clock.now() < self._until

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Take part until `work` returns. It is started when leadership is acquired, and cancelled when it is lost."""
        async with self._informers.share(self._scope) as leases:
            while True:
                await self._acquire(leases)
                log.info("became leader", extra={"lease": str(self._key), "identity": self.identity})
                if await self._run_while_leading(leases, work):
                    return
                log.warning("lost leadership", extra={"lease": str(self._key), "identity": self.identity})

    async def _run_while_leading(self, leases: store.Store, work: Callable[[], Awaitable[None]]) -> bool:
        working, renewing = asyncio.create_task(_run(work)), asyncio.create_task(self._renew(leases))
        try:
            await asyncio.wait([working, renewing], return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            return working.done()
        finally:
            await tasks.cancel(working, renewing)
            await self._release(leases)

    async def _acquire(self, leases: store.Store) -> None:
        """Wait until this process holds the lease: checked at each change of it, and when it expires."""
        changed = asyncio.Event()
        end = leases.listen(lambda _: changed.set(), table.own_key)
        try:
            while True:
                changed.clear()
                wait = self._seconds_to_wait(leases)
                if wait <= 0:
                    if await self._try_acquire_or_renew(leases):
                        return
                    wait = self._timing.retry * self._random.uniform(1.0, 1.2)
                await _wait(changed, wait)
        finally:
            end()

    def _seconds_to_wait(self, leases: store.Store) -> float:
        if not leases.freshness.has_synced:
            return self._timing.retry
        lease = leases.get(self._key)
        holder, duration = ("", 0.0) if lease is None else _terms(lease)
        if lease is None or holder in ("", self.identity):
            return 0.0
        if self._seen[0] != lease.version:
            self._seen = (lease.version, self._clock.now())
        return self._seen[1] + duration - self._clock.now()

    async def _renew(self, leases: store.Store) -> None:
        """Renew the lease; returns when the renew deadline has passed or another process holds the lease."""
        while self._holds(leases):
            await self._clock.sleep(min(self._timing.retry, self._until - self._clock.now()))
            if self._holds(leases):  # otherwise the write would take the lease from the new leader
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._until - self._clock.now()):
                        await self._try_acquire_or_renew(leases)
        self._until = -math.inf

    def _holds(self, leases: store.Store) -> bool:
        lease = leases.get(self._key)
        return self.is_leading and lease is not None and _terms(lease)[0] == self.identity

    async def _try_acquire_or_renew(self, leases: store.Store) -> bool:
        """Write the identity into the lease, provided that it has not changed since it was read."""
        known = leases.get(self._key)
        began = self._clock.now()  # before the request: others count from when the server stored it, which is later
        try:
            answer = await self._write(known)
        except api_errors.Conflict:
            await self._read(leases)
            return False
        except api_errors.ApiError as error:
            log.warning("lease not written", extra={"lease": str(self._key), "error": str(error)})
            return False
        leases.observe(answer)
        self._until = began + self._timing.renew
        return self.is_leading  # false if the answer took longer than the renew deadline

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
        now = timestamps.micro_time(self._clock.wall())
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
        """Read the lease from the server, because the watch may lag behind."""
        try:
            leases.observe(await self._client.get(resources.LEASES, self._key.name, namespace=self._key.namespace))
        except api_errors.ApiError as error:
            log.warning("lease not read", extra={"lease": str(self._key), "error": str(error)})

    async def _release(self, leases: store.Store) -> None:
        """Release the lease if it is still held, so that other candidates need not wait until it expires."""
        lease = leases.get(self._key)
        if lease is None or not self._holds(leases):
            return
        self._until = -math.inf
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                spec = lease.spec | {"holderIdentity": "", "leaseDurationSeconds": 1}
                leases.observe(await self._client.update(resources.LEASES, lease.with_fields(spec=spec)))
        except (TimeoutError, api_errors.ApiError) as error:
            log.warning("lease not released", extra={"lease": str(self._key), "error": str(error)})


def _terms(lease: objects.Object) -> tuple[str, float]:
    spec = lease.spec
    return spec.get("holderIdentity") or "", float(spec.get("leaseDurationSeconds") or 0)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
