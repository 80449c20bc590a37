"""Lower Events about our objects, told again on the upper objects: what happens below is seen where people look.

At most one write for each Event below; too many at once, or old ones at a start, are left out. The lower objects'
own Events are short-lived, so nothing is cached and nothing is made good later.
"""

import asyncio
import contextlib
import datetime
import hashlib
import random as randomness

import msgspec

from hansa.engine.side import Side
from hansa.engine.view import View
from hansa.kube import errors, resources, watching
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model.pair import Key
from hansa.runtime import clock, metrics

MOST = 1000  # Events that wait to be written; more than that is noise
WRITERS = 4
OLD = 60.0  # seconds before we last listened, after which a full list brings no news; clocks differ by less
TOLD = ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime", "series", "action")


class _Involved(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Echo:
    """The Events of one lower cluster, for one upper one."""

    def __init__(
        self,
        view: View,
        lower: Side,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._view, self._lower, self._clock, self._random = view, lower, clock, random
        rules = view.mode.rules.values() if view.mode.echoes else ()
        self._resources = {rule.resource.kind: rule.resource for rule in rules if rule.tells}
        self._waiting: dict[str, Object] = {}  # the newest state of each Event, by its uid
        self._changed = asyncio.Semaphore(0)
        self._counter = metrics.counter(
            "hansa_events_echoed_total", "Lower Events told above, or why not.", labels=["cluster", "answer"]
        )

    async def run(self) -> None:
        """Listen and tell until cancelled; nothing comes up of kinds that tell nothing else either."""
        if not self._resources:
            return
        async with asyncio.TaskGroup() as group:
            for _ in range(WRITERS):
                group.create_task(self._write())
            await self._listen()

    async def _listen(self) -> None:
        client, heard = self._lower.cluster.client, self._clock.wall()
        since: datetime.datetime | None = None  # while a full list comes: what is older was told before
        changes = watching.watch(client, resources.EVENTS, clock=self._clock, random=self._random)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Restarted():
                        since = heard - datetime.timedelta(seconds=OLD)
                    case watching.Synced():
                        since = None
                    case watching.Added(event) | watching.Modified(event):
                        if since is None or _last(event) > since:
                            self._take(event)
                if since is None:
                    heard = self._clock.wall()

    def _take(self, event: Object) -> None:
        if self._key(event) is None:
            return
        if len(self._waiting) >= MOST and event.uid not in self._waiting:
            self._count("too many")
            return
        if event.uid not in self._waiting:
            self._changed.release()
        self._waiting[event.uid] = event

    def _key(self, event: Object) -> Key | None:
        """The upper object that an Event is about, if its own object is a copy of ours."""
        involved = event.decode("involvedObject", _Involved)
        resource = self._resources.get(involved.kind)
        if resource is None:
            return None
        lower = self._lower.stores[resource].get(Place(involved.namespace, involved.name))
        if lower is None or lower.uid != involved.uid:
            return None
        [topic] = self._view.topics(self._lower.cluster.name, resource, lower)
        return topic if isinstance(topic, Key) else None

    async def _write(self) -> None:
        while True:
            await self._changed.acquire()
            uid = next(iter(self._waiting))
            event = self._waiting.pop(uid)
            key = self._key(event)
            upper = None if key is None else self._view.get(key)
            if upper is None:
                continue
            try:
                await self._tell(event, upper)
            except errors.ApiError as error:
                self._count(type(error).__name__)
            else:
                self._count("ok")

    async def _tell(self, event: Object, upper: Object) -> None:
        client = self._view.upper.cluster.client
        told = _event(event, upper)
        is_first = (event.get("count") or 1) <= 1 and not event.get("series")
        try:
            if is_first:
                await client.create(resources.EVENTS, told)
                return
            patch = {name: value for name in TOLD if (value := told.get(name)) is not None}
            await client.patch(resources.EVENTS, told.name, patch, namespace=told.namespace)
        except errors.AlreadyExists:
            pass  # told before a restart
        except errors.NotFound:
            await client.create(resources.EVENTS, told)

    def _count(self, answer: str) -> None:
        self._counter.of(self._lower.cluster.name, answer).inc()


def _event(event: Object, upper: Object) -> Object:
    """The Event as it stands above: the same words from the same source, about the upper object."""
    subject = {
        "apiVersion": upper.api_version,
        "kind": upper.kind,
        "namespace": upper.namespace,
        "name": upper.name,
        "uid": upper.uid,
    }
    if field_path := event.decode("involvedObject", _Involved).field_path:
        subject["fieldPath"] = field_path
    # The name is derived, so that what was told is found again without being remembered.
    name = f"{upper.name[:235]}.{hashlib.sha256(event.uid.encode()).hexdigest()[:16]}"
    bare = event.with_metadata(
        namespace=upper.namespace or "default",
        name=name,
        uid="",
        resource_version="",
        creation_timestamp=None,
        labels={},
        annotations={},
        owner_references=(),
        finalizers=(),
    )
    return bare.with_fields(involvedObject=subject, related=None)


class _Series(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    last_observed_time: datetime.datetime | None = None


def _last(event: Object) -> datetime.datetime:
    """When it was last so."""
    times = [event.metadata.creation_timestamp, *(_time(event, field) for field in ("lastTimestamp", "eventTime"))]
    if _is_there(event, "series"):
        times.append(event.decode("series", _Series).last_observed_time)
    return max(time for time in times if time is not None)


def _time(event: Object, field: str) -> datetime.datetime | None:
    return event.decode(field, datetime.datetime) if _is_there(event, field) else None


def _is_there(event: Object, field: str) -> bool:
    return event.raw(field) not in (b"", b"null")
