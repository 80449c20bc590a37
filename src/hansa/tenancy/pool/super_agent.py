"""The agent in a super cluster: deletes the pods of tenants when the fence is not renewed any more.

`hansa super-agent` runs it. Only vc-syncer creates these pods, so they stay deleted while the super cluster is cut off.
When the fence expires is decided by `fence`.
"""

import asyncio
import logging
import math
from typing import Final

from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.runtime import clock, metrics
from hansa.tenancy.pool import fence
from hansa.tenancy.pool.fence import Fence, Terms

log = logging.getLogger(__name__)
CONCURRENT_DELETES: Final = 20


class SuperAgent:
    """Polls the fence of one cluster. It does not watch: a watch without events does not prove that no renewal came."""

    def __init__(self, client: Client, recorder: Recorder, *, clock: clock.Clock, metrics: metrics.Registry) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock
        self._fence = Fence()
        self._noted, self._is_fenced, self._is_missing = -math.inf, False, False
        self._ended = metrics.counter("hansa_fence_ended_pods_total", "Pods of tenants that the fence deleted.")
        metrics.gauge("hansa_fenced", "1 while pods of tenants must not run in this super cluster.").read(
            lambda: {(): float(self._is_fenced)}
        )
        metrics.gauge("hansa_fence_age_seconds", "Time since the fence was renewed.").read(
            lambda: {(): max(0.0, self._fence.age(clock.now()))}
        )

    async def run(self) -> None:
        """Check the fence until cancelled."""
        while True:
            began = self._clock.now()
            pause = fence.NO_LEASE_SECONDS if self._fence.terms is None else self._fence.terms.check_seconds
            try:
                async with asyncio.timeout(max(pause, 1.0)):
                    lease = await self._read()
            except (errors.ApiError, TimeoutError) as error:
                log.warning("fence check failed", extra={"error": str(error) or "timeout"})
            else:
                await self._check(lease, began)
            if (wait := began + pause - self._clock.now()) > 0:
                await self._clock.sleep(wait)

    async def _read(self) -> Object | None:
        lease = fence.LEASE
        try:
            return await self._client.get(resources.LEASES, lease.name, namespace=lease.namespace)
        except errors.NotFound:
            return None

    async def _check(self, lease: Object | None, now: float) -> None:
        """Act on the lease; `now` is when the request that read it was sent."""
        found = fence.terms(lease)
        self._fence = self._fence.observed(found, now, age=0.0 if lease is None else fence.noted_age(lease))
        if lease is None or found is None:
            self._unfence()
            if not self._is_missing:
                log.warning("no fence: lease missing or never renewed", extra={"lease": str(fence.LEASE)})
            self._is_missing = True
            return
        self._is_missing = False
        try:
            if now >= self._fence.ends:
                await self._delete_pods(lease, found)
            else:
                self._unfence()
            await self._note(found, now)
        except errors.ApiError as error:
            log.warning("fencing failed, retrying", extra={"error": str(error)})

    def _unfence(self) -> None:
        if self._is_fenced:
            log.info("fence renewed")
        self._is_fenced = False

    async def _note(self, found: Terms, now: float) -> None:
        """Annotate the lease with the current renewal: NOTES times per duration, at every check once it is late."""
        age = self._fence.age(now)
        if age > 2 * found.duration / fence.RENEWALS or now - self._noted >= found.duration / fence.NOTES:
            await self._client.patch(
                resources.LEASES, fence.LEASE.name, fence.note(found, age), namespace=fence.LEASE.namespace
            )
            self._noted = now

    async def _delete_pods(self, lease: Object, found: Terms) -> None:
        pods = await self._pods(found)
        if not self._is_fenced or pods:
            age = f"{self._fence.age(self._clock.now()):.0f}"
            log.warning("fence expired", extra={"seconds": age, "pods": len(pods)})
            message = f"Lease {fence.LEASE} was not renewed for {age} s: deleting {len(pods)} pods of tenants"
            self._recorder.record(InvolvedObject.of(lease), "Fenced", message, event_type=EventType.WARNING)
        self._is_fenced = True
        for first in range(0, len(pods), CONCURRENT_DELETES):
            batch = pods[first : first + CONCURRENT_DELETES]
            await asyncio.gather(*(self._delete(pod, grace) for pod, grace in batch))

    async def _pods(self, found: Terms) -> list[tuple[Object, int]]:
        """The pods to delete, with grace periods: those of tenants of the meta cluster that renewed the fence."""
        namespaces = {
            one.name
            for one in await self._copies(resources.NAMESPACES)
            if one.annotations.get(keys.META, "") == found.meta
        }
        graces = (
            (pod, fence.pod_grace(pod, found.pod_seconds))
            for pod in await self._copies(resources.PODS)
            if pod.namespace in namespaces
        )
        return [(pod, grace) for pod, grace in graces if grace is not None]

    async def _copies(self, resource: Resource) -> list[Object]:
        return [one async for page in self._client.pages(resource, labels=stamp.selector()) for one in page.items]

    async def _delete(self, pod: Object, grace: int) -> None:
        try:
            await self._client.delete(resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=grace)
        except errors.ApiError as error:  # NotFound, too; the next check finds the pods that are left
            log.info("pod not deleted", extra={"pod": str(pod.key), "error": str(error)})
        else:
            self._ended.inc()
