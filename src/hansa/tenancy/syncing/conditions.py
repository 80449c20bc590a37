"""Writes the conditions of VirtualClusters that vc-syncer knows, with a Warning event when they get worse.

The other conditions are vc-manager's.
"""

import datetime
import logging
from collections.abc import Callable, Collection, Iterable

import msgspec

from hansa.control import event_recorder
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime import clock, timestamps
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, Condition, ConditionState, ConditionType
from hansa.tenancy.syncing import annotations

log = logging.getLogger(__name__)
SYNCED = ConditionState(True, "Syncing", "objects of the tenant are synced")
INVALID, LIMIT_REACHED = "InvalidAnnotation", "LimitReached"
WITHIN_LIMITS = ConditionState(True, "WithinLimits", "no object waits because of a limit")
FIELD_MANAGER = "hansa-vc-syncer"


class TenantConditions:
    """Writes the conditions of VirtualClusters in the meta cluster when they change."""

    def __init__(
        self,
        meta: Client,
        recorder: event_recorder.Recorder,
        *,
        full_limits: Callable[[str], Collection[str]] = lambda _key: (),
        clock: clock.Clock,
    ) -> None:
        self._meta, self._recorder, self._clock = meta, recorder, clock
        self._full_limits = full_limits  # the limits that objects of a tenant wait for, by its key

    async def set_synced(self, vc: Object) -> bool:
        """Set Synced to True. Returns whether objects wait because of a limit."""
        return await self._update(vc, SYNCED)

    async def set_not_synced(self, vc: Object, reason: str, message: str) -> None:
        """Set Synced to False."""
        await self._update(vc, ConditionState(False, reason, message))

    def refuse(self, vc: Object, reason: str, message: str) -> None:
        """Record that another syncer serves the tenant. The conditions are that syncer's."""
        log.error("tenant refused", extra={"vc": str(vc.key), "reason": reason, "error": message})
        subject = event_recorder.InvolvedObject.of(vc)
        self._recorder.record(subject, reason, message, event_type=event_recorder.EventType.WARNING)

    async def set_super_cluster(self, vc: Object, id_: str) -> None:
        """Set status.superCluster, unless the VirtualCluster has changed: another syncer may have set its own."""
        patch = {"metadata": {"uid": vc.uid, "resourceVersion": vc.version}, "status": {"superCluster": id_ or None}}
        await self._meta.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status")

    async def set_control_plane(self, vc: Object, id_: str) -> Object:
        """Set status.controlPlane, by which replicas that share the tenants find two with the same control plane."""
        patch = {"metadata": {"uid": vc.uid}, "status": {"controlPlane": id_}}
        return await self._meta.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status")

    async def add_super_clusters(self, vc: Object, supers: Collection[str]) -> None:
        """Add ids to status.superClusters, before these super clusters sync objects into the tenant's control plane.

        vc-manager deletes the synced objects with the VirtualCluster if its control plane is an existing cluster.
        """
        known = api.virtual_cluster(vc).status.super_clusters
        if set(supers) <= set(known):
            return
        patch = {
            "metadata": {
                "uid": vc.uid,
                "resourceVersion": vc.version,
            },  # another syncer may add its own at the same time
            "status": {"superClusters": sorted({*known, *supers})},
        }
        try:
            await self._meta.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status")
        except (errors.NotFound, errors.Denied, errors.Invalid) as error:
            log.warning("status.superClusters not updated", extra={"vc": str(vc.key), "error": str(error)})

    async def _update(self, vc: Object, synced: ConditionState) -> bool:
        full = self._full_limits(api.virtual_cluster(vc).root)
        before, now = _before(vc), conditions(vc, synced, self._clock.wall(), full)
        if list(before.values()) == now:
            return bool(full)
        await self._write(vc, now)
        for one in now:
            if needs_warning(one, before.get(one.type)):
                self._recorder.record(
                    event_recorder.InvolvedObject.of(vc),
                    one.reason,
                    one.message,
                    event_type=event_recorder.EventType.WARNING,
                )
        return bool(full)

    async def _write(self, vc: Object, written: Iterable[Condition]) -> None:
        # Server-side apply removes a condition that we applied before and leave out now.
        applied = Object.of(
            {
                "apiVersion": VIRTUAL_CLUSTERS.api_version,
                "kind": VIRTUAL_CLUSTERS.kind,
                "metadata": {"namespace": vc.namespace, "name": vc.name, "uid": vc.uid},
                "status": {"conditions": msgspec.to_builtins(list(written))},
            }
        )
        try:
            await self._meta.apply(
                VIRTUAL_CLUSTERS, applied, field_manager=FIELD_MANAGER, subresource="status", force=True
            )
        except (errors.NotFound, errors.Conflict, errors.Denied, errors.Invalid) as error:
            # Deleted, recreated, or of a CRD whose schema lacks the condition: the event is recorded anyway.
            log.info("condition not written", extra={"vc": str(vc.key), "error": str(error)})


def conditions(
    vc: Object, synced: ConditionState, now: datetime.datetime, full: Collection[str] = ()
) -> list[Condition]:
    """All conditions of a VirtualCluster that vc-syncer writes. WithinLimits is there once a limit was reached."""
    states, before = {ConditionType.SYNCED: synced}, _before(vc)
    if full:
        reached = "; ".join(full)
        remedy = "delete objects, or raise spec.limits of the VirtualCluster"
        states[ConditionType.WITHIN_LIMITS] = ConditionState(False, LIMIT_REACHED, f"{reached}; {remedy}")
    elif ConditionType.WITHIN_LIMITS in before:
        states[ConditionType.WITHIN_LIMITS] = WITHIN_LIMITS
    if invalid := annotations.of(vc).invalid:
        states[ConditionType.INVALID_ANNOTATIONS] = ConditionState(True, INVALID, "; ".join(invalid))
    return [_condition(kind, state, before.get(kind), now) for kind, state in states.items()]


def needs_warning(new: Condition, before: Condition | None) -> bool:
    """Whether a condition is worth a Warning event. The message of Synced may change with every retry."""
    if new.type == ConditionType.SYNCED:
        return new.status == "False" and (before is None or before.status == "True" or before.reason != new.reason)
    if new.type == ConditionType.WITHIN_LIMITS:
        return new.status == "False" and (before is None or before.status == "True")
    return before is None or before.message != new.message


def _condition(
    kind: ConditionType, state: ConditionState, before: Condition | None, now: datetime.datetime
) -> Condition:
    status, since = "True" if state.status else "False", timestamps.time(now)
    if before is not None and before.status == status:
        since = before.last_transition_time
    return Condition(str(kind), status, state.reason, state.message, since)


def _before(vc: Object) -> dict[str, Condition]:
    found = {one.type: one for one in api.virtual_cluster(vc).status.conditions}
    kinds = (ConditionType.SYNCED, ConditionType.WITHIN_LIMITS, ConditionType.INVALID_ANNOTATIONS)
    return {kind: found[kind] for kind in kinds if kind in found}
