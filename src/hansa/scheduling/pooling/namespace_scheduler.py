"""The namespace scheduler: plans the slices of a namespace, writes placements to its annotations, and records them.

`slicing.planning` decides; the syncer syncs objects to the clusters.
"""

import logging
import weakref
from collections.abc import Callable
from typing import Any

from hansa.control import controller
from hansa.control.event_recorder import EventType, InvolvedObject
from hansa.kube import client, errors, objects, resources
from hansa.model import keys
from hansa.runtime import clock, timestamps
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling import records
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.records import Records
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NAMESPACE, NamespaceRef, Upper, Uppers
from hansa.scheduling.slicing import annotations, placements
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import SlicePlan, plan

log = logging.getLogger(__name__)
CONDITION = "Placed"


class NamespaceScheduler:
    """Reconciles namespaces. `holding_changed` is called when the slices of a namespace changed."""

    def __init__(
        self,
        uppers: Uppers,
        clusters: PoolClusters,
        reservations: Reservations,
        *,
        settings: annotations.PoolSettings,
        records: Records,
        clock: clock.Clock,
        holding_changed: Callable[[NamespaceRef], None],
    ) -> None:
        self._uppers, self._clusters, self._reservations = uppers, clusters, reservations
        self._records = records
        self._settings, self._clock, self._holding_changed = settings, clock, holding_changed
        self._loaded: weakref.WeakSet[Upper] = weakref.WeakSet()
        self.incomplete: set[NamespaceRef] = set()  # with fewer or more slices than the quota

    def load(self) -> None:
        """Reserve the slices of all namespaces by their records, before the first plan."""
        for upper in self._uppers.all():
            self._load(upper)

    def _load(self, upper: Upper) -> None:
        if upper.is_complete and upper not in self._loaded:
            self._loaded.add(upper)
            for namespace in upper.namespaces.values():
                namespace_ref = NamespaceRef(upper.name, namespace.name)
                try:
                    holding = self._held(upper, namespace)
                except Exception:  # one namespace must not keep the schedulers of all from starting
                    log.exception("slices not read", extra={"namespace": str(namespace_ref)})
                    continue
                self._reservations.hold(namespace_ref, holding)

    async def reconcile(self, namespace_ref: NamespaceRef) -> controller.Outcome:
        """Plan the slices of a namespace, and write the placements."""
        upper = self._uppers.get(namespace_ref.upper)
        if upper is not None and not upper.is_known:
            return controller.Done()  # requeued when its caches are synced again
        if upper is not None:
            self._load(upper)  # a new upper cluster: its slices count before its first plan
        namespace = None if upper is None else upper.namespaces.get(objects.NamespacedName("", namespace_ref.name))
        if upper is None or namespace is None:
            self.incomplete.discard(namespace_ref)
            if upper is not None:
                await self._records.remove(upper.name, namespace_ref.name)
            self._reservations.hold_until_written(namespace_ref, Holding())
            self._hold(namespace_ref, Holding())
            return controller.Done()
        if not namespace.is_deleting:
            await self._place(namespace_ref, upper, namespace)
        return controller.Done()

    async def _place(self, namespace_ref: NamespaceRef, upper: Upper, namespace: objects.Object) -> None:
        try:
            request, invalid = annotations.slice_request(
                str(namespace_ref),
                namespace,
                upper.quotas.find(NAMESPACE, namespace_ref.name),
                used=self._reservations.used(namespace_ref),
                planned=records.planned(self._records.of(upper.name, namespace)),
                is_recorded=self._records.has_any(upper.name),
                settings=self._settings,
            )
            self._reservations.hold_until_written(namespace_ref, Holding())  # its own former slices count as free
            members = self._clusters.members({*request.used, *(request.planned.placements if request.planned else ())})
            new_plan = plan(request, self._reservations.pool.with_members(members))
        except HansaError as error:
            await self._set_condition(upper, namespace, "False", "NotUnderstood", str(error))
            return
        (self.incomplete.add if new_plan.missing or new_plan.notes else self.incomplete.discard)(namespace_ref)
        self._hold(namespace_ref, new_plan.holding)  # before the write: concurrent plans must see it
        self._reservations.hold_until_written(namespace_ref, self._held(upper, namespace))
        refused = invalid or (
            f"annotation {keys.PLACEMENTS} is not applied: {new_plan.refused}" if new_plan.refused else ""
        )
        namespace = await self._write(upper, namespace, new_plan)
        if self._reservations.hold_until_written(namespace_ref, Holding()):
            self._holding_changed(namespace_ref)
        await self._report(upper, namespace, new_plan, refused)

    def _held(self, upper: Upper, namespace: objects.Object) -> Holding:
        """What a namespace holds. Annotations count only for a tenant that was placed before there were records."""
        planned = records.planned(self._records.of(upper.name, namespace))
        if planned is not None:
            return planned
        is_recorded = self._records.has_any(upper.name)
        return Holding() if is_recorded else annotations.annotated(namespace, self._settings.slice)

    def _hold(self, namespace_ref: NamespaceRef, holding: Holding) -> None:
        if self._reservations.hold(namespace_ref, holding):
            self._holding_changed(namespace_ref)

    async def _write(self, upper: Upper, namespace: objects.Object, new_plan: SlicePlan) -> objects.Object:
        wanted = _annotations(new_plan)
        if any(namespace.annotations.get(key) != value for key, value in wanted.items()):
            namespace = await self._annotate(upper, namespace, wanted)
        # After the annotations: others would be edits of a user, which the next plan decides about.
        if not new_plan.holding:
            await self._records.remove(upper.name, namespace.name)
        elif records.planned(self._records.of(upper.name, namespace)) != new_plan.holding:
            size = records.size(new_plan.holding.slice)
            await self._records.write(upper.name, namespace, new_plan.placements, size)
        return namespace

    async def _annotate(self, upper: Upper, namespace: objects.Object, wanted: dict[str, str | None]) -> objects.Object:
        # With resourceVersion: a plan of an old state must not overwrite a user's edit.
        metadata = {"uid": namespace.uid, "resourceVersion": namespace.version, "annotations": wanted}
        written = await upper.client.patch(resources.NAMESPACES, namespace.name, {"metadata": metadata})
        upper.namespaces.observe(written)
        text = wanted[keys.PLACEMENTS] or "none"
        upper.recorder.record(InvolvedObject.of(written), "Scheduled", f"placed slices: {text}")
        log.info("namespace placed", extra={"cluster": upper.name, "namespace": namespace.name, "placements": text})
        return written

    async def _report(self, upper: Upper, namespace: objects.Object, new_plan: SlicePlan, refused: str) -> None:
        if refused:
            upper.recorder.record(
                InvolvedObject.of(namespace), "PlacementsRefused", refused, event_type=EventType.WARNING
            )
        if new_plan.missing is not None:
            await self._set_condition(upper, namespace, "False", "InsufficientCapacity", str(new_plan.missing))
        elif new_plan.notes:
            await self._set_condition(upper, namespace, "True", "ExceedsQuota", "; ".join(new_plan.notes))
        elif new_plan.wanted:
            await self._set_condition(upper, namespace, "True", "Placed", f"all {new_plan.wanted} slices are placed")
        elif _condition(namespace):
            await self._set_condition(
                upper, namespace, "False", "NoQuota", "no slices: no ResourceQuota limits a resource of the slice"
            )

    async def _set_condition(
        self, upper: Upper, namespace: objects.Object, status: str, reason: str, message: str
    ) -> None:
        """Write the condition if it changed, and record a Warning event if it became False."""
        before = _condition(namespace)
        if (before.get("status"), before.get("reason"), before.get("message")) == (status, reason, message):
            return
        if status == "False" and reason != "NoQuota":
            upper.recorder.record(InvolvedObject.of(namespace), reason, message, event_type=EventType.WARNING)
        since = timestamps.time(self._clock.wall())
        condition = {"type": CONDITION, "status": status, "reason": reason, "message": message}
        condition["lastTransitionTime"] = before["lastTransitionTime"] if before.get("status") == status else since
        try:
            written = await upper.client.patch(
                resources.NAMESPACES,
                namespace.name,
                {"metadata": {"uid": namespace.uid}, "status": {"conditions": [condition]}},
                subresource="status",
                patch_type=client.PatchType.STRATEGIC,
            )
        except (errors.NotFound, errors.Conflict, errors.Denied) as error:
            log.info(
                "condition not written",
                extra={"cluster": upper.name, "namespace": namespace.name, "error": str(error)},
            )
        else:
            upper.namespaces.observe(written)


def _annotations(new_plan: SlicePlan) -> dict[str, str | None]:
    later = dict.fromkeys(key.replace(*keys.POOL, 1) for key in (keys.PLACEMENTS,))
    if not new_plan.placements:
        return {keys.PLACEMENTS: None, keys.PLANNED: None, **later}
    text = placements.encoded(new_plan.placements)
    return {keys.PLACEMENTS: text, keys.PLANNED: None, **later}


def _condition(namespace: objects.Object) -> dict[str, Any]:
    conditions = namespace.status.get("conditions") or ()
    return next((dict(one) for one in conditions if one.get("type") == CONDITION), {})
