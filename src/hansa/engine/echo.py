"""Lower Events told again on the upper objects: what happens below is seen where people look.

Words about objects never hold up what the objects themselves have to tell: one write at a time, and what is no warning
gives way while there is other work. At most one write for each Event below; too many at once are left out.
"""

import asyncio
import hashlib
from collections.abc import Callable

from hansa.engine.hearing import Heard, Involved
from hansa.engine.view import View
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.pair import Key
from hansa.runtime import clock, metrics

MOST = 1000  # Events that wait to be written; more than that is noise
PAUSE = 0.1  # seconds before each while there is other work, in all upper clusters together
TOLD = ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime", "series", "action")


class Manners:
    """When somebody may speak who has no warning: one after the other, with pauses, while there is other work."""

    def __init__(self, is_busy: Callable[[], bool], *, clock: clock.Clock) -> None:
        self._is_busy, self._clock, self._turn = is_busy, clock, asyncio.Lock()

    async def wait(self) -> None:
        """Wait for one's turn."""
        if self._is_busy():
            async with self._turn:
                if self._is_busy():
                    await self._clock.sleep(PAUSE)


class Echo:
    """The Events that are told in one upper cluster."""

    def __init__(self, view: View, *, manners: Manners, metrics: metrics.Registry) -> None:
        self._view, self._manners = view, manners
        self._warnings, self._words = _Line(), _Line()
        self._counter = metrics.counter(
            "hansa_events_echoed_total", "Lower Events told above, or why not.", labels=["cluster", "answer"]
        )

    async def run(self) -> None:
        """Tell until cancelled."""
        await self._view.upper.listed(self._view.upper.stores)  # only what is there is told of
        async with asyncio.TaskGroup() as both:
            both.create_task(self._tell_warnings())
            both.create_task(self._tell_words())

    def take(self, heard: Heard) -> None:
        """Have an Event told."""
        line = self._warnings if heard.event.get("type") == "Warning" else self._words
        if not line.put(heard):
            self._count(heard, "too many")

    async def _tell_warnings(self) -> None:
        while True:
            await self._write(await self._warnings.take())

    async def _tell_words(self) -> None:
        while True:
            await self._words.wait()
            await self._manners.wait()
            await self._write(await self._words.take())

    async def _write(self, heard: Heard) -> None:
        upper = self._view.get(Key(self._view.name, heard.resource, heard.origin.namespace, heard.origin.name))
        link = self._view.links.get(heard.lower)
        if upper is None or upper.uid != heard.origin.uid or link is None:
            return
        message = self._view.mode.retold(heard.event.get("message") or "", link)
        try:
            await self._tell(heard.event, _event(heard.event, upper, message))
        except errors.ApiError as error:
            self._count(heard, type(error).__name__)
        else:
            self._count(heard, "ok")

    async def _tell(self, event: Object, told: Object) -> None:
        client = self._view.upper.cluster.client
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

    def _count(self, heard: Heard, answer: str) -> None:
        self._counter.of(heard.lower, answer).inc()


class _Line:
    """The newest state of each Event that waits, by its uid; as JSON, which is one piece of memory instead of 35."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[bytes, str, Resource, stamp.Origin]] = {}
        self._changed = asyncio.Event()

    def put(self, heard: Heard) -> bool:
        """Let it wait; False when too many do."""
        if len(self._waiting) >= MOST and heard.event.uid not in self._waiting:
            return False
        self._waiting[heard.event.uid] = (heard.event.to_json(), heard.lower, heard.resource, heard.origin)
        self._changed.set()
        return True

    async def take(self) -> Heard:
        """The one that has waited longest."""
        await self.wait()
        event, lower, resource, origin = self._waiting.pop(next(iter(self._waiting)))
        return Heard(Object.parse(event), lower, resource, origin)

    async def wait(self) -> None:
        """Wait until there is one."""
        while not self._waiting:
            self._changed.clear()
            await self._changed.wait()


def _event(event: Object, upper: Object, message: str) -> Object:
    """The Event as it stands above: the same from the same source, about the upper object."""
    subject = {
        "apiVersion": upper.api_version,
        "kind": upper.kind,
        "namespace": upper.namespace,
        "name": upper.name,
        "uid": upper.uid,
    }
    if field_path := event.decode("involvedObject", Involved).field_path:
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
    return bare.with_fields(involvedObject=subject, related=None, message=message)
