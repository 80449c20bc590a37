"""Mirrors Events of lower clusters on the upper objects, where users look.

Events never delay the sync of objects: one write at a time, and Normal events are throttled while the queue is busy. At
most one write per lower Event; when too many wait, new ones are dropped.
"""

import asyncio
import hashlib
from collections.abc import Callable

from hansa.engine.events.watch import Involved, LowerEvent
from hansa.engine.view.upper_view import UpperView
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.pair import Key
from hansa.runtime import clock, metrics

MOST = 1000  # waiting Events of each type
PAUSE = 0.1  # seconds before each Normal event while the queue is busy, over all upper clusters
FIELDS = ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime", "series", "action")


class EventThrottle:
    """Throttles Normal events while the queue is busy."""

    def __init__(self, is_busy: Callable[[], bool], *, clock: clock.Clock) -> None:
        self._is_busy, self._clock, self._turn = is_busy, clock, asyncio.Lock()

    async def wait(self) -> None:
        """Wait until the next Normal event may be written."""
        if self._is_busy():
            async with self._turn:
                if self._is_busy():
                    await self._clock.sleep(PAUSE)


class EventMirror:
    """The Events that are mirrored in one upper cluster."""

    def __init__(self, view: UpperView, *, throttle: EventThrottle, metrics: metrics.Registry) -> None:
        self._view, self._throttle = view, throttle
        self._warnings, self._normal = _Waiting(), _Waiting()
        self._counter = metrics.counter(
            "hansa_events_mirrored_total",
            "Lower Events mirrored in upper clusters, by result.",
            labels=["cluster", "answer"],
        )

    async def run(self) -> None:
        """Mirror until cancelled."""
        upper = self._view.clusters.upper
        await upper.listed(upper.stores)  # an Event without an upper object is dropped
        async with asyncio.TaskGroup() as both:
            both.create_task(self._mirror_warnings())
            both.create_task(self._mirror_normal())

    def add(self, lower: LowerEvent) -> None:
        """Mirror an Event soon."""
        waiting = self._warnings if lower.event.get("type") == "Warning" else self._normal
        if not waiting.put(lower):
            self._count(lower, errors.Answer.DROPPED)

    async def _mirror_warnings(self) -> None:
        while True:
            await self._write(await self._warnings.take())

    async def _mirror_normal(self) -> None:
        while True:
            await self._normal.wait()
            await self._throttle.wait()
            await self._write(await self._normal.take())

    async def _write(self, lower: LowerEvent) -> None:
        clusters, origin = self._view.clusters, lower.origin
        upper = clusters.get(Key(clusters.name, lower.resource, origin.namespace, origin.name))
        link = clusters.links.get(lower.lower)
        if upper is None or upper.uid != origin.uid or link is None:
            return
        message = self._view.mode.upper_message(lower.event.get("message") or "", link)
        try:
            await self._send(lower.event, _event(lower.event, upper, message))
        except errors.ApiError as error:
            self._count(lower, errors.answer_of(error))
        else:
            self._count(lower, errors.Answer.OK)

    async def _send(self, event: Object, mirrored: Object) -> None:
        client = self._view.clusters.upper.cluster.client
        is_first = (event.get("count") or 1) <= 1 and not event.get("series")
        try:
            if is_first:
                await client.create(resources.EVENTS, mirrored)
                return
            patch = {name: value for name in FIELDS if (value := mirrored.get(name)) is not None}
            await client.patch(resources.EVENTS, mirrored.name, patch, namespace=mirrored.namespace)
        except errors.AlreadyExists:
            pass  # mirrored before a restart
        except errors.NotFound:
            await client.create(resources.EVENTS, mirrored)

    def _count(self, lower: LowerEvent, answer: errors.Answer) -> None:
        self._counter.labels(lower.lower, answer).inc()


class _Waiting:
    """The newest state of each waiting Event, by uid, as JSON: that is one allocation instead of 35."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[bytes, str, Resource, stamp.Origin]] = {}
        self._changed = asyncio.Event()

    def put(self, lower: LowerEvent) -> bool:
        """Add or replace an Event; False if too many wait."""
        if len(self._waiting) >= MOST and lower.event.uid not in self._waiting:
            return False
        self._waiting[lower.event.uid] = (lower.event.to_json(), lower.lower, lower.resource, lower.origin)
        self._changed.set()
        return True

    async def take(self) -> LowerEvent:
        """The oldest one."""
        await self.wait()
        event, lower, resource, origin = self._waiting.pop(next(iter(self._waiting)))
        return LowerEvent(Object.parse(event), lower, resource, origin)

    async def wait(self) -> None:
        """Wait until there is one."""
        while not self._waiting:
            self._changed.clear()
            await self._changed.wait()


def _event(event: Object, upper: Object, message: str) -> Object:
    """The Event in the upper cluster: the same, about the upper object."""
    subject = {
        "apiVersion": upper.api_version,
        "kind": upper.kind,
        "namespace": upper.namespace,
        "name": upper.name,
        "uid": upper.uid,
    }
    if field_path := event.decode("involvedObject", Involved).field_path:
        subject["fieldPath"] = field_path
    # The name is derived, so that a mirrored Event is found again without being remembered.
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
    return bare.with_fields(involvedObject=subject, related=None, message=message)
