"""The agent in a super cluster: when nobody renews its fence any more, it ends the pods of tenants there.

They begin elsewhere then, and only a syncer makes them, so nothing here brings them back. What counts as the end is
`fence`'s to say.
"""

import asyncio
import logging
import math
from typing import Final

from hansa.control.event_recorder import Kind, Recorder, Subject
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.runtime import clock, metrics
from hansa.tenancy.pool import fence
from hansa.tenancy.pool.fence import Fence, Terms

log = logging.getLogger(__name__)
AT_ONCE: Final = 20  # deletions


class SuperAgent:
    """Looks at the fence of one cluster. It asks: a watch that is silent does not prove that nothing was renewed."""

    def __init__(self, client: Client, recorder: Recorder, *, clock: clock.Clock, metrics: metrics.Registry) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock
        self._fence = Fence()
        self._noted, self._is_fenced, self._lacks = -math.inf, False, False
        self._ended = metrics.counter("hansa_fence_ended_pods_total", "Pods of tenants that the fence deleted.")
        metrics.gauge("hansa_fenced", "1 while pods of tenants must not run in this super cluster.").read(
            lambda: {(): float(self._is_fenced)}
        )
        metrics.gauge("hansa_fence_age_seconds", "Time since the fence was renewed.").read(
            lambda: {(): max(0.0, self._fence.age(clock.now()))}
        )

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            began = self._clock.now()
            pause = fence.WITHOUT_LEASE if self._fence.terms is None else self._fence.terms.look_again
            try:
                async with asyncio.timeout(max(pause, 1.0)):
                    lease = await self._read()
            except (errors.ApiError, TimeoutError) as error:
                log.warning("the fence cannot be seen", extra={"error": str(error) or "no answer in time"})
            else:
                await self._look(lease, began)
            if (wait := began + pause - self._clock.now()) > 0:
                await self._clock.sleep(wait)

    async def _read(self) -> Object | None:
        place = fence.PLACE
        try:
            return await self._client.get(resources.LEASES, place.name, namespace=place.namespace)
        except errors.NotFound:
            return None

    async def _look(self, lease: Object | None, now: float) -> None:
        """The lease was read by a request that began now."""
        found = fence.terms(lease)
        self._fence = self._fence.looked(found, now, age=0.0 if lease is None else fence.noted_age(lease))
        if lease is None or found is None:
            self._become_free()
            if not self._lacks:
                log.warning("nobody renews a fence here, so nothing is fenced", extra={"lease": str(fence.PLACE)})
            self._lacks = True
            return
        self._lacks = False
        try:
            if now >= self._fence.ends:
                await self._end(lease, found)
            else:
                self._become_free()
            await self._note(found, now)
        except errors.ApiError as error:
            log.warning("the fence is not finished", extra={"error": str(error)})  # it is looked at again at once

    def _become_free(self) -> None:
        if self._is_fenced:
            log.info("the fence is renewed: tenants' pods may run here again")
        self._is_fenced = False

    async def _note(self, found: Terms, now: float) -> None:
        """Write down what is seen: now and then while all is well, and each time while nothing is renewed."""
        age = self._fence.age(now)
        if age > 2 * found.duration / fence.RENEWALS or now - self._noted >= found.duration / fence.NOTES:
            await self._client.patch(
                resources.LEASES, fence.PLACE.name, fence.note(found, age), namespace=fence.PLACE.namespace
            )
            self._noted = now

    async def _end(self, lease: Object, found: Terms) -> None:
        doomed = await self._doomed(found)
        if not self._is_fenced or doomed:
            said = (
                f"it was not renewed for {self._fence.age(self._clock.now()):.0f} s: {len(doomed)} pods of tenants end"
            )
            log.warning("fences", extra={"says": said})
            self._recorder.record(Subject.of(lease), "Fenced", said, kind=Kind.WARNING)
        self._is_fenced = True
        for first in range(0, len(doomed), AT_ONCE):
            await asyncio.gather(*(self._delete(pod, grace) for pod, grace in doomed[first : first + AT_ONCE]))

    async def _doomed(self, found: Terms) -> list[tuple[Object, int]]:
        """The pods that must end: copies in namespaces of tenants of the meta cluster that renewed the fence."""
        homes = {
            one.name
            for one in await self._copies(resources.NAMESPACES)
            if one.annotations.get(keys.META, "") == found.meta
        }
        graces = (
            (pod, fence.last_grace(pod, found.last_seconds))
            for pod in await self._copies(resources.PODS)
            if pod.namespace in homes
        )
        return [(pod, grace) for pod, grace in graces if grace is not None]

    async def _copies(self, resource: Resource) -> list[Object]:
        return [one async for page in self._client.pages(resource, labels=stamp.selector()) for one in page.items]

    async def _delete(self, pod: Object, grace: int) -> None:
        try:
            await self._client.delete(resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=grace)
        except errors.ApiError as error:  # also that it is gone: what is left is found by the next look
            log.info("a pod was not ended", extra={"pod": str(pod.key), "error": str(error)})
        else:
            self._ended.inc()
