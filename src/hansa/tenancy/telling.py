"""Tells on a VirtualCluster whether its tenant can be synced: a condition, and a Warning when it becomes impossible."""

import logging
from typing import Any

from hansa.control import events
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime import clock
from hansa.tenancy.api import VIRTUAL_CLUSTERS

log = logging.getLogger(__name__)
CONDITION = "Synced"
WELL = "Syncing"
WELL_MESSAGE = "objects of the tenant are carried to the super cluster"
FIELD_MANAGER = "hansa-vc-syncer"


class Telling:
    """Writes the condition of VirtualClusters in the meta cluster, when it is not what it was."""

    def __init__(self, meta: Client, recorder: events.Recorder, *, clock: clock.Clock) -> None:
        self._meta, self._recorder, self._clock = meta, recorder, clock

    async def well(self, vc: Object) -> None:
        """The tenant is synced."""
        await self._tell(vc, "True", WELL, WELL_MESSAGE)

    async def trouble(self, vc: Object, reason: str, message: str) -> None:
        """The tenant is not synced now, and why."""
        if await self._tell(vc, "False", reason, message):
            self._recorder.record(events.Subject.of(vc), reason, message, kind=events.Kind.WARNING)

    async def _tell(self, vc: Object, status: str, reason: str, message: str) -> bool:
        """Write it; whether it is news."""
        before = _condition(vc)
        if [before.get(word) for word in ("status", "reason", "message")] == [status, reason, message]:
            return False
        is_turned = before.get("status") != status
        since = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ") if is_turned else before["lastTransitionTime"]
        condition = {
            "type": CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        }
        applied = Object.of(
            {
                "apiVersion": VIRTUAL_CLUSTERS.api_version,
                "kind": VIRTUAL_CLUSTERS.kind,
                "metadata": {"namespace": vc.namespace, "name": vc.name, "uid": vc.uid},
                "status": {"conditions": [condition]},
            }
        )
        try:
            await self._meta.apply(
                VIRTUAL_CLUSTERS, applied, field_manager=FIELD_MANAGER, subresource="status", force=True
            )
        except (errors.NotFound, errors.Conflict, errors.Denied, errors.Invalid) as error:
            # Gone, another one by now, or of a definition that knows no such condition: the event has to do.
            log.info("a condition was not taken", extra={"vc": str(vc.key), "error": str(error)})
        return is_turned or before.get("reason") != reason


def _condition(vc: Object) -> dict[str, Any]:
    conditions = vc.status.get("conditions", ())
    return next((dict(one) for one in conditions if one.get("type") == CONDITION), {})
