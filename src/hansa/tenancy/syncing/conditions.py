"""Tells on a VirtualCluster whether its tenant can be synced, and what of its annotations cannot be read.

Both are conditions; a Warning says so when something becomes impossible, or cannot be read.
"""

import datetime
import logging
from collections.abc import Collection, Iterable

import msgspec

from hansa.control import event_recorder
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime import clock
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, Condition, ConditionType
from hansa.tenancy.operator.status import Verdict
from hansa.tenancy.syncing import annotations

log = logging.getLogger(__name__)
WELL = Verdict(True, "Syncing", "objects of the tenant are carried to the super cluster")
UNREAD = "InvalidAnnotation"
FIELD_MANAGER = "hansa-vc-syncer"


class TenantConditions:
    """Writes the conditions of VirtualClusters in the meta cluster, when they are not what they were."""

    def __init__(self, meta: Client, recorder: event_recorder.Recorder, *, clock: clock.Clock) -> None:
        self._meta, self._recorder, self._clock = meta, recorder, clock

    async def well(self, vc: Object) -> None:
        """The tenant is synced."""
        await self._tell(vc, WELL)

    async def trouble(self, vc: Object, reason: str, message: str) -> None:
        """The tenant is not synced now, and why."""
        await self._tell(vc, Verdict(False, reason, message))

    async def gives(self, vc: Object, supers: Collection[str]) -> None:
        """These super clusters, by their ids, are about to give things to the tenant: who ends it has to know."""
        known = api.virtual_cluster(vc).status.super_clusters
        if set(supers) <= set(known):
            return
        patch = {
            "metadata": {"uid": vc.uid, "resourceVersion": vc.version},  # another syncer may add its own now
            "status": {"superClusters": sorted({*known, *supers})},
        }
        try:
            await self._meta.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status")
        except (errors.NotFound, errors.Denied, errors.Invalid) as error:
            log.warning("super clusters could not be noted", extra={"vc": str(vc.key), "error": str(error)})

    async def _tell(self, vc: Object, synced: Verdict) -> None:
        before, now = _before(vc), conditions(vc, synced, self._clock.wall())
        if list(before.values()) == now:
            return
        await self._write(vc, now)
        for one in now:
            if is_bad_news(one, before.get(one.type)):
                self._recorder.record(
                    event_recorder.Subject.of(vc), one.reason, one.message, kind=event_recorder.Kind.WARNING
                )

    async def _write(self, vc: Object, told: Iterable[Condition]) -> None:
        # What we apply is all that we say: a condition that we said before and leave out now goes away.
        applied = Object.of(
            {
                "apiVersion": VIRTUAL_CLUSTERS.api_version,
                "kind": VIRTUAL_CLUSTERS.kind,
                "metadata": {"namespace": vc.namespace, "name": vc.name, "uid": vc.uid},
                "status": {"conditions": msgspec.to_builtins(list(told))},
            }
        )
        try:
            await self._meta.apply(
                VIRTUAL_CLUSTERS, applied, field_manager=FIELD_MANAGER, subresource="status", force=True
            )
        except (errors.NotFound, errors.Conflict, errors.Denied, errors.Invalid) as error:
            # Gone, another one by now, or of a definition that knows no such condition: the event has to do.
            log.info("a condition was not taken", extra={"vc": str(vc.key), "error": str(error)})


def conditions(vc: Object, synced: Verdict, now: datetime.datetime) -> list[Condition]:
    """All that we tell of a VirtualCluster, each with the time since when it is so."""
    said = {ConditionType.SYNCED: synced}
    if unread := annotations.of(vc).unread:
        said[ConditionType.INVALID_ANNOTATIONS] = Verdict(True, UNREAD, "; ".join(unread))
    before = _before(vc)
    return [_condition(kind, verdict, before.get(kind), now) for kind, verdict in said.items()]


def is_bad_news(told: Condition, before: Condition | None) -> bool:
    """Whether it is worth a Warning. The words of one trouble may change with every try."""
    if told.type == ConditionType.SYNCED:
        return told.status == "False" and (before is None or before.status == "True" or before.reason != told.reason)
    return before is None or before.message != told.message


def _condition(kind: ConditionType, verdict: Verdict, before: Condition | None, now: datetime.datetime) -> Condition:
    status, since = "True" if verdict.status else "False", now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.status == status:
        since = before.last_transition_time
    return Condition(str(kind), status, verdict.reason, verdict.message, since)


def _before(vc: Object) -> dict[str, Condition]:
    found = {one.type: one for one in api.virtual_cluster(vc).status.conditions}
    return {kind: found[kind] for kind in (ConditionType.SYNCED, ConditionType.INVALID_ANNOTATIONS) if kind in found}
