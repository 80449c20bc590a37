"""Renews the fences of super clusters, in vc-scheduler and vc-syncer, while they reach the super cluster.

A renewal promises that a pod moved elsewhere is deleted in this super cluster first. What happens when renewals stop is
left to the agent in the super cluster.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics, timestamps
from hansa.tenancy.pool import fence
from hansa.tenancy.pool.fence import AgentPresence

log = logging.getLogger(__name__)
AGENT_TIMEOUT: Final = 2  # lease durations without a new note, after which an agent counts as absent


@dataclass(frozen=True, slots=True)
class FenceSettings:
    """The holder of the leases, and the seconds until a super cluster is lost; with an agent, `grace` more."""

    holder: str
    lost_after: float
    grace: float


async def _no_report(_cluster: str) -> None:
    pass


async def _no_agent_report(_cluster: str, _has_agent: bool) -> None:
    pass


class FenceRenewer:
    """Renews fences of reachable clusters, each time after `report`; `report_agent` gets whether an agent is there.

    A cluster is left out while `is_due` is false: another replica renews its fence.
    """

    def __init__(
        self,
        settings: FenceSettings,
        meta: Callable[[], Awaitable[str]],
        *,
        report: Callable[[str], Awaitable[None]] = _no_report,
        report_agent: Callable[[str, bool], Awaitable[None]] = _no_agent_report,
        is_due: Callable[[str], bool] = lambda _: True,
        clock: clock.Clock,
        metrics: metrics.Registry,
    ) -> None:
        self._settings, self._meta, self._clock = settings, meta, clock
        self._report, self._report_agent, self._is_due = report, report_agent, is_due
        self._answers: dict[str, errors.Answer] = {}  # the latest one of each cluster
        self._renewals = metrics.counter(
            "hansa_fence_renewals_total",
            "Renewals of fences of super clusters, by answer.",
            labels=["cluster", "answer"],
        )

    async def run(self, cluster: Cluster) -> None:
        """Renew the fence of a super cluster until cancelled."""
        meta, agent = await self._meta(), AgentPresence(self._settings.lost_after * AGENT_TIMEOUT)
        changed = asyncio.Event()
        end = cluster.health.listen(changed.set)
        try:
            while True:
                changed.clear()
                # A renewal sent to an unreachable cluster could arrive late, after its pods were moved.
                if not cluster.health.error and self._is_due(cluster.name):
                    await self._renew(cluster, meta, agent)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.lost_after / fence.RENEWALS):
                        await changed.wait()
        finally:
            end()

    async def _renew(self, cluster: Cluster, meta: str, agent: AgentPresence) -> None:
        answer = errors.Answer.OK
        try:
            async with asyncio.timeout(self._settings.lost_after / fence.RENEWALS):
                # The report comes first: vc-scheduler must not count a cluster as lost whose fence is renewed.
                await self._report(cluster.name)
                lease = await self._write(cluster.client, meta)
        except (errors.ApiError, TimeoutError) as error:
            answer = errors.answer_of(error)
            if answer != self._answers.get(cluster.name):
                log.warning("fence renewal failed", extra={"cluster": cluster.name, "error": str(error) or "timeout"})
        else:
            agent.observe(fence.agent_note(lease), self._clock.now())
            await self._report_agent(cluster.name, agent.is_present)
        self._answers[cluster.name] = answer
        self._renewals.labels(cluster.name, answer).inc()

    async def _write(self, client: Client, meta: str) -> Object:
        now = timestamps.micro_time(self._clock.wall())
        settings = self._settings
        renewal = fence.renewal(settings.holder, now, lost_after=settings.lost_after, grace=settings.grace, meta=meta)
        lease = fence.LEASE
        try:
            return await client.patch(resources.LEASES, lease.name, renewal, namespace=lease.namespace)
        except errors.NotFound:  # the super cluster joined without `hansa join`, which creates the lease
            renewal["metadata"] |= {"namespace": lease.namespace, "name": lease.name}
            kind = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
            return await client.create(resources.LEASES, Object.of({**kind, **renewal}))


class AgentAnnotations:
    """Annotates Clusters of the meta cluster with whether an agent is present, to know it after a restart."""

    def __init__(
        self, meta: Client, clusters: Resource, find: Callable[[str], Object | None], *, recorder: Recorder
    ) -> None:
        self._meta, self._clusters, self._find, self._recorder = meta, clusters, find, recorder

    async def update(self, name: str, has_agent: bool) -> None:
        """Set or remove the annotation of a super cluster, with an event."""
        found = self._find(name)
        if found is None or (found.annotations.get(keys.AGENT) == "true") is has_agent:
            return
        patch = {"metadata": {"uid": found.uid, "annotations": {keys.AGENT: "true" if has_agent else None}}}
        try:
            await self._meta.patch(self._clusters, name, patch, namespace=found.namespace)
        except errors.ApiError as error:
            log.warning("agent annotation failed", extra={"cluster": name, "error": str(error)})
        else:
            self._record(found, has_agent)

    def _record(self, found: Object, has_agent: bool) -> None:
        if has_agent:
            message = "super-agent is running: it deletes tenants' pods if the super cluster is cut off"
            self._recorder.record(InvolvedObject.of(found), "AgentRunning", message)
        else:
            message = (
                f"super-agent stopped checking Lease {fence.LEASE}: if the super cluster is cut off, tenants' pods keep"
                " running there while replacements start elsewhere; restart the agent"
            )
            self._recorder.record(InvolvedObject.of(found), "AgentNotResponding", message, event_type=EventType.WARNING)
