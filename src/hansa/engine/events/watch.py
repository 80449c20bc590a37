"""Watches Events about copies in a lower cluster: one watch, however many upper clusters share it.

Events are short-lived, so nothing is cached or caught up later. Writing them in the upper cluster is the mirror's part.
"""

import asyncio
import contextlib
import datetime
import random as randomness
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from hansa.control import informer
from hansa.engine.caches import ClusterCaches
from hansa.kube import resources, watching
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.mode import Mode
from hansa.runtime import clock

OLD = 60.0  # seconds before the watch was interrupted: older Events in a full list were mirrored already


class LowerEvent(NamedTuple):
    """An Event of a lower cluster, and the upper object of the copy that it is about."""

    event: Object
    lower: str
    resource: Resource
    origin: stamp.Origin


class Involved(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventWatch:
    """The Events of one lower cluster about copies of kinds that are synced up."""

    def __init__(
        self,
        lower: ClusterCaches,
        mode: Mode,
        on_event: Callable[[LowerEvent], None],
        *,
        clock: clock.Clock,
        random: randomness.Random,
    ) -> None:
        self._lower, self._on_event, self._clock, self._random = lower, on_event, clock, random
        self._has_normal = mode.mirrors_normal_events
        synced_up = (rule.resource for rule in mode.rules.values() if rule.up_patches is not None)
        self._resources = {resource.kind: resource for resource in synced_up if resource in lower.stores}

    async def run(self) -> None:
        """Watch until cancelled."""
        began = self._clock.wall()
        await self._lower.listed(self._resources.values())  # the upper object is found by the copy alone
        async with asyncio.TaskGroup() as watches:
            for scope in self._lower.cluster.scopes(informer.Scope(resources.EVENTS)):
                watches.create_task(self._watch(scope.namespace, began))

    async def _watch(self, namespace: str, last: datetime.datetime) -> None:
        since: datetime.datetime | None = None  # during a full list: older ones were mirrored before
        client = self._lower.cluster.client
        changes = watching.watch(client, resources.EVENTS, namespace=namespace, clock=self._clock, random=self._random)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Restarted():
                        since = last - datetime.timedelta(seconds=OLD)
                    case watching.Synced():
                        since = None
                    case watching.Added(event) | watching.Modified(event):
                        if since is None or _last(event) > since:
                            self._report(event)
                if since is None:
                    last = self._clock.wall()

    def _report(self, event: Object) -> None:
        involved = event.decode("involvedObject", Involved)
        if (resource := self._resources.get(involved.kind)) is None:
            return
        if not self._has_normal and event.get("type") == "Normal":
            return
        copy = self._lower.stores[resource].get(NamespacedName(involved.namespace, involved.name))
        if copy is not None and copy.uid == involved.uid and (origin := stamp.of(copy)) is not None:
            self._on_event(LowerEvent(event, self._lower.cluster.name, resource, origin))


class _Series(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    last_observed_time: datetime.datetime | None = None


def _last(event: Object) -> datetime.datetime:
    """When it last occurred."""
    times = [event.metadata.creation_timestamp, *(_time(event, field) for field in ("lastTimestamp", "eventTime"))]
    if _is_there(event, "series"):
        times.append(event.decode("series", _Series).last_observed_time)
    return max(time for time in times if time is not None)


def _time(event: Object, field: str) -> datetime.datetime | None:
    return event.decode(field, datetime.datetime) if _is_there(event, field) else None


def _is_there(event: Object, field: str) -> bool:
    return event.raw(field) not in (b"", b"null")
