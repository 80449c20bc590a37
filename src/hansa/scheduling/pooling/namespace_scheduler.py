"""The namespace scheduler: reads what a namespace wishes, plans its slices, and writes where they are.

Deciding is `planning`; carrying objects to those clusters is the syncer's.
"""

import logging
import weakref
from collections.abc import Callable
from typing import Any

from hansa.control import controller
from hansa.control.event_recorder import Kind, Subject
from hansa.kube import client, errors, objects, resources
from hansa.model import keys
from hansa.runtime import clock
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling import annotations
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NAMESPACE, NamespaceRef, Upper, Uppers
from hansa.scheduling.slicing import placements
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import Plan, plan

log = logging.getLogger(__name__)
CONDITION = "Placed"


class NamespaceScheduler:
    """Plans one namespace at a time. `moved` is told when a namespace holds other slices than before."""

    def __init__(
        self,
        uppers: Uppers,
        landscape: PoolClusters,
        ledger: Reservations,
        *,
        settings: annotations.PoolSettings,
        clock: clock.Clock,
        moved: Callable[[NamespaceRef], None],
    ) -> None:
        self._uppers, self._landscape, self._ledger = uppers, landscape, ledger
        self._settings, self._clock, self._moved = settings, clock, moved
        self._loaded: weakref.WeakSet[Upper] = weakref.WeakSet()
        self.uneasy: set[NamespaceRef] = set()  # those that have less than they want, or more

    def load(self) -> None:
        """Enter what all namespaces hold by their own words, before anything new is given away."""
        for upper in self._uppers.all():
            self._load(upper)

    def _load(self, upper: Upper) -> None:
        if upper.is_complete and upper not in self._loaded:
            self._loaded.add(upper)
            for namespace in upper.namespaces.values():
                self._ledger.hold(
                    NamespaceRef(upper.name, namespace.name), annotations.held(namespace, self._settings.slice)
                )

    async def reconcile(self, space: NamespaceRef) -> controller.Outcome:
        """Plan a namespace, and write the plan."""
        upper = self._uppers.get(space.upper)
        if upper is not None and not upper.is_known:
            return controller.Done()  # nothing can be concluded; its coming back wakes us
        if upper is not None:
            self._load(upper)  # it came late: what it holds counts before the first of its namespaces is planned
        namespace = None if upper is None else upper.namespaces.get(objects.NamespacedName("", space.name))
        if upper is None or namespace is None:
            self.uneasy.discard(space)
            self._ledger.owe(space, Holding())
            self._hold(space, Holding())
            return controller.Done()
        if not namespace.is_leaving:
            await self._place(space, upper, namespace)
        return controller.Done()

    async def _place(self, space: NamespaceRef, upper: Upper, namespace: objects.Object) -> None:
        try:
            wish, unreadable = annotations.wish(
                str(space),
                namespace,
                upper.quotas.find(NAMESPACE, space.name),
                used=self._ledger.used(space),
                settings=self._settings,
            )
            self._ledger.owe(space, Holding())  # it is not in its own way
            said = plan(wish, self._ledger.pool.with_members(self._landscape.members()))
        except HansaError as error:
            await self._tell(upper, namespace, "False", "NotUnderstood", str(error))
            return
        (self.uneasy.add if said.missing or said.notes else self.uneasy.discard)(space)
        self._hold(space, said.holding)  # before it is written: the next plan must see it
        self._ledger.owe(space, annotations.held(namespace, self._settings.slice))
        refused = unreadable or (f"these placements cannot be: {said.refused}" if said.refused else "")
        namespace = await self._write(upper, namespace, said)
        if self._ledger.owe(space, Holding()):
            self._moved(space)
        await self._report(upper, namespace, said, refused)

    def _hold(self, space: NamespaceRef, holding: Holding) -> None:
        if self._ledger.hold(space, holding):
            self._moved(space)

    async def _write(self, upper: Upper, namespace: objects.Object, said: Plan) -> objects.Object:
        wanted = _annotations(said)
        if all(namespace.annotations.get(key) == value for key, value in wanted.items()):
            return namespace
        # The version: what was planned on an old state must not overwrite what a person wrote since.
        metadata = {"uid": namespace.uid, "resourceVersion": namespace.version, "annotations": wanted}
        written = await upper.client.patch(resources.NAMESPACES, namespace.name, {"metadata": metadata})
        upper.namespaces.observe(written)
        text = wanted[keys.PLACEMENTS] or "nothing: it has no quota"
        upper.recorder.record(Subject.of(written), "Scheduled", f"its slices are in {text}")
        log.info("a namespace is placed", extra={"cluster": upper.name, "namespace": namespace.name, "in": text})
        return written

    async def _report(self, upper: Upper, namespace: objects.Object, said: Plan, refused: str) -> None:
        if refused:
            upper.recorder.record(Subject.of(namespace), "PlacementsRefused", refused, kind=Kind.WARNING)
        if said.missing is not None:
            await self._tell(upper, namespace, "False", "WaitsForRoom", str(said.missing))
        elif said.notes:
            await self._tell(upper, namespace, "True", "KeepsMore", "; ".join(said.notes))
        elif said.wanted:
            await self._tell(upper, namespace, "True", "Placed", f"all of its {said.wanted} slices are placed")
        elif _condition(namespace):
            await self._tell(upper, namespace, "False", "NoQuota", "it has no quota, so it has no slices")

    async def _tell(self, upper: Upper, namespace: objects.Object, status: str, reason: str, message: str) -> None:
        """Write the condition if it is news, and an event if that is bad news."""
        before = _condition(namespace)
        if (before.get("status"), before.get("reason"), before.get("message")) == (status, reason, message):
            return
        if status == "False" and reason != "NoQuota":
            upper.recorder.record(Subject.of(namespace), reason, message, kind=Kind.WARNING)
        since = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
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
            log.info("a condition was not taken", extra={"namespace": namespace.name, "error": str(error)})
        else:
            upper.namespaces.observe(written)


def _annotations(said: Plan) -> dict[str, str | None]:
    later = dict.fromkeys(key.replace(*keys.POOL, 1) for key in (keys.PLACEMENTS,))
    if not said.placements:
        return {keys.PLACEMENTS: None, keys.PLANNED: None, **later}
    text = placements.spelled(said.placements)
    return {keys.PLACEMENTS: text, keys.PLANNED: placements.recorded(said.holding), **later}


def _condition(namespace: objects.Object) -> dict[str, Any]:
    conditions = namespace.status.get("conditions") or ()
    return next((dict(one) for one in conditions if one.get("type") == CONDITION), {})
