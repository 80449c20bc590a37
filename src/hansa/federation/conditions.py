"""Writes the condition Ready, and other status fields, of Sources and Targets, with an event when it gets worse."""

import datetime
import logging
from typing import Final

import msgspec

from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.federation import api
from hansa.federation.api import Condition
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.runtime import clock, timestamps

log = logging.getLogger(__name__)
READY: Final = "Ready"
FIELD_MANAGER: Final = "hansa-agent"


class Conditions:
    """Writes statuses in one cluster when they change."""

    def __init__(self, client: Client, recorder: Recorder, *, clock: clock.Clock) -> None:
        self._client, self._recorder, self._clock = client, recorder, clock

    async def set_ready(self, resource: Resource, obj: Object, message: str, **fields: str | bool) -> None:
        """Set Ready to True, and other fields of the status."""
        await self._set(resource, obj, Condition(READY, "True", READY, message), fields)

    async def set_not_ready(
        self, resource: Resource, obj: Object, reason: str, message: str, **fields: str | bool
    ) -> None:
        """Set Ready to False, and other fields of the status."""
        await self._set(resource, obj, Condition(READY, "False", reason, message), fields)

    async def _set(self, resource: Resource, obj: Object, wanted: Condition, fields: dict[str, str | bool]) -> None:
        before = next((one for one in api.status(obj).conditions if one.type == READY), None)
        now = _dated(wanted, before, obj, self._clock.wall())
        if before == now and all(obj.status.get(name, type(value)()) == value for name, value in fields.items()):
            return
        await self._write(resource, obj, now, fields)
        if now.status == "False" and (before is None or (before.status, before.reason) != (now.status, now.reason)):
            subject = InvolvedObject.of(obj)
            self._recorder.record(subject, now.reason, now.message, event_type=EventType.WARNING)

    async def _write(
        self, resource: Resource, obj: Object, condition: Condition, fields: dict[str, str | bool]
    ) -> None:
        # Other controllers may have conditions of their own: the list is merged by type.
        applied = Object.of(
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"namespace": obj.namespace, "name": obj.name, "uid": obj.uid},
                "status": {
                    **{name: value for name, value in fields.items() if value},
                    "conditions": [msgspec.to_builtins(condition)],
                },
            }
        )
        try:
            await self._client.apply(resource, applied, field_manager=FIELD_MANAGER, subresource="status", force=True)
        except (errors.NotFound, errors.Conflict) as error:  # deleted or created anew: its next event leads here again
            log.info("condition not written", extra={"object": str(obj.key), "error": str(error)})


def _dated(wanted: Condition, before: Condition | None, obj: Object, now: datetime.datetime) -> Condition:
    since = timestamps.time(now)
    if before is not None and before.status == wanted.status:
        since = before.last_transition_time
    return msgspec.structs.replace(wanted, last_transition_time=since, observed_generation=obj.metadata.generation)
