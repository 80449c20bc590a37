"""Lower Events told again on the upper objects: what happens below is seen where people look.

One write at a time, so that words about objects never hold up what the objects themselves have to tell: a busy server
gets fewer of them. At most one write for each Event below; too many at once are left out.
"""

import asyncio
import hashlib

from hansa.engine.hearing import Heard, Involved
from hansa.engine.view import View
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.model.pair import Key
from hansa.runtime import metrics

MOST = 1000  # Events that wait to be written; more than that is noise
TOLD = ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "eventTime", "series", "action")


class Echo:
    """The Events that are told in one upper cluster."""

    def __init__(self, view: View, *, metrics: metrics.Registry) -> None:
        self._view = view
        self._waiting: dict[str, Heard] = {}  # the newest state of each Event, by its uid
        self._changed = asyncio.Semaphore(0)
        self._counter = metrics.counter(
            "hansa_events_echoed_total", "Lower Events told above, or why not.", labels=["cluster", "answer"]
        )

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await self._changed.acquire()
            await self._write(self._waiting.pop(next(iter(self._waiting))))

    def take(self, heard: Heard) -> None:
        """Have an Event told."""
        uid = heard.event.uid
        if uid not in self._waiting:
            if len(self._waiting) >= MOST:
                self._count(heard, "too many")
                return
            self._changed.release()
        self._waiting[uid] = heard

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
