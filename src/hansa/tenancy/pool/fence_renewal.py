"""Renews the fences of super clusters, on the side of those who move pods or remove their copies.

Renewing says: whatever is moved away from there, we remove its copy first, or we move nothing. What happens when nobody
can say so any more is the agent's, in the super cluster itself.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from hansa.control.event_recorder import Kind, Recorder, Subject
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics
from hansa.tenancy.pool import fence
from hansa.tenancy.pool.fence import Presence

log = logging.getLogger(__name__)
SILENT: Final = 2  # times that a lease holds: an agent that wrote nothing for so long does not look any more


@dataclass(frozen=True, slots=True)
class Keeping:
    """Who renews, and for how long: super clusters are lost after so many seconds, and `grace` more with an agent."""

    holder: str
    lost_after: float
    grace: float


async def _no_report(_cluster: str) -> None:
    pass


async def _nobody(_cluster: str, _has_agent: bool) -> None:
    pass


class FenceKeeper:
    """Renews while a cluster answers, after `report` said so to others; `tell` hears whether an agent looks."""

    def __init__(
        self,
        keeping: Keeping,
        meta: Callable[[], Awaitable[str]],
        *,
        report: Callable[[str], Awaitable[None]] = _no_report,
        tell: Callable[[str, bool], Awaitable[None]] = _nobody,
        clock: clock.Clock,
        metrics: metrics.Registry,
    ) -> None:
        self._keeping, self._meta, self._report, self._tell, self._clock = keeping, meta, report, tell, clock
        self._answers: dict[str, str] = {}  # the last one of each cluster
        self._renewals = metrics.counter(
            "hansa_fence_renewals_total",
            "Renewals of fences of super clusters, by answer.",
            labels=["cluster", "answer"],
        )

    async def keep(self, cluster: Cluster) -> None:
        """Renew the fence of a super cluster until cancelled."""
        meta, agent = await self._meta(), Presence(self._keeping.lost_after * SILENT)
        changed = asyncio.Event()
        end = cluster.health.listen(changed.set)
        try:
            while True:
                changed.clear()
                # Of a cluster that does not answer nobody can say when a renewal arrives, if it does.
                if not cluster.health.trouble:
                    await self._renew(cluster, meta, agent)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._keeping.lost_after / fence.RENEWALS):
                        await changed.wait()
        finally:
            end()

    async def _renew(self, cluster: Cluster, meta: str, agent: Presence) -> None:
        answer = "ok"
        try:
            async with asyncio.timeout(self._keeping.lost_after / fence.RENEWALS):
                await self._report(cluster.name)  # first: who gives a cluster up must not know less than its fence
                lease = await self._write(cluster.client, meta)
        except (errors.ApiError, TimeoutError) as error:
            answer = type(error).__name__
            if answer != self._answers.get(cluster.name):
                log.warning("a fence is not renewed", extra={"cluster": cluster.name, "error": str(error)})
        else:
            agent.look(fence.noted(lease), self._clock.now())
            await self._tell(cluster.name, agent.is_there)
        self._answers[cluster.name] = answer
        self._renewals.labels(cluster.name, answer).inc()

    async def _write(self, client: Client, meta: str) -> Object:
        now = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        said = fence.renewal(
            self._keeping.holder, now, lost_after=self._keeping.lost_after, grace=self._keeping.grace, meta=meta
        )
        place = fence.PLACE
        try:
            return await client.patch(resources.LEASES, place.name, said, namespace=place.namespace)
        except errors.NotFound:  # a super cluster that somebody let join by hand
            said["metadata"] |= {"namespace": place.namespace, "name": place.name}
            kind = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
            return await client.create(resources.LEASES, Object.of({**kind, **said}))


class AgentNotes:
    """Writes down at the Clusters of the meta cluster whether an agent looks, so that it is known after a restart."""

    def __init__(
        self, meta: Client, clusters: Resource, find: Callable[[str], Object | None], *, recorder: Recorder
    ) -> None:
        self._meta, self._clusters, self._find, self._recorder = meta, clusters, find, recorder

    async def tell(self, name: str, has_agent: bool) -> None:
        """An agent looks at the fence of this super cluster, or none does."""
        found = self._find(name)
        if found is None or (found.annotations.get(keys.AGENT) == "true") is has_agent:
            return
        said = {"metadata": {"uid": found.uid, "annotations": {keys.AGENT: "true" if has_agent else None}}}
        try:
            await self._meta.patch(self._clusters, name, said, namespace=found.namespace)
        except errors.ApiError as error:
            log.warning("an agent is not noted", extra={"cluster": name, "error": str(error)})
        else:
            self._record(found, has_agent)

    def _record(self, found: Object, has_agent: bool) -> None:
        if has_agent:
            self._recorder.record(Subject.of(found), "AgentLooks", "if it is cut off, an agent there ends its pods")
        else:
            said = "no agent looks at its fence any more: if it is cut off, its pods go on while others begin elsewhere"
            self._recorder.record(Subject.of(found), "AgentSilent", said, kind=Kind.WARNING)
