"""Watching a resource for ever: a full state, then every change to it, over any number of broken connections.

What comes is a stream of values, trouble included; keeping a cache of them is left to others.

    Restarted                a full list follows: what the listener knows may be out of date
    Added …                  its objects
    Synced(version)          the list is complete: what was not in it since Restarted is gone
    Added, Modified, Deleted changes, in the server's order
    Bookmark(version)        nothing else happened up to this version
    Interrupted(error)       no news for now; what is known stays known, and the watch goes on by itself

A broken connection goes on from the last version, without Restarted. After a compaction or a long break comes
Restarted again, so a listener that drops at Synced what was not listed sees exactly the differences, with deletions.
"""

import asyncio
import contextlib
import random as randomness
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field

import msgspec

from hansa.kube import decoding, errors
from hansa.kube.client import Client
from hansa.kube.errors import ApiError
from hansa.kube.http.lines import Lines
from hansa.kube.http.transport import Stream
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.runtime.backoff import Backoff
from hansa.runtime.clock import Clock, SystemClock

INITIAL_EVENTS_END = "k8s.io/initial-events-end"  # the annotation of the bookmark that ends a streamed list


class Restarted(msgspec.Struct, frozen=True, gc=False):
    """A full list follows."""


class Added(msgspec.Struct, frozen=True, gc=False):
    """An object is there: a new one, or one of the full list."""

    obj: Object


class Modified(msgspec.Struct, frozen=True, gc=False):
    """An object changed."""

    obj: Object


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object is gone, or no longer matches the selectors; it is shown in its last state."""

    obj: Object


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The full list is complete."""

    version: str


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """All up to this version has been told."""

    version: str


class Interrupted(msgspec.Struct, frozen=True):
    """The watch is broken and is tried again in `retry_in` seconds."""

    error: ApiError
    retry_in: float


Change = Restarted | Added | Modified | Deleted | Synced | Bookmark | Interrupted


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a watch waits for what; all in seconds."""

    idle: float = 90.0  # without a byte; the server sends a bookmark about every minute, so more is a dead connection
    life: float = 600.0  # at most, then we come back: so that load spreads anew over the API servers behind an address
    shortest: float = 1.0  # a watch that ends sooner, without an event, counts as a failure
    memory: float = 120.0  # after a longer break all is listed anew: a quiet watch could not tell that it goes on
    backoff: Backoff = field(default=Backoff(first=0.5, factor=2.0, most=10.0, jitter=0.2))


async def watch(
    client: Client,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    patience: Patience | None = None,
    clock: Clock | None = None,
    random: randomness.Random | None = None,
) -> AsyncGenerator[Change, None]:
    """All that happens to the objects that the selectors match. It never ends: close it when it is no longer wanted."""
    clock = clock or SystemClock()
    watcher = _Watcher(
        client,
        resource,
        namespace=namespace,
        labels=labels,
        fields=fields,
        patience=patience or Patience(),
        clock=clock,
        random=random or randomness.Random(),  # noqa: S311 - spreads load, guards nothing
    )
    while True:
        try:
            async with contextlib.aclosing(watcher.connection()) as batches:
                async for batch in batches:
                    for change in batch:
                        yield change
        except ApiError as error:
            if delay := watcher.delay_after(error):
                yield Interrupted(error, delay)
                await clock.sleep(delay)


class _Watcher:
    """One watch over its many connections."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str,
        labels: str,
        fields: str,
        patience: Patience,
        clock: Clock,
        random: randomness.Random,
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._patience = patience
        self._clock = clock
        self._random = random
        self._doing = f"watch {resource}" + (f" in {namespace}" if namespace else "")
        self._version = ""  # up to which all has been told; empty: a full list is needed
        self._streams_lists = True  # until the server says that it doesn't
        self._failures = 0
        self._broken_since: float | None = None

    async def connection(self) -> AsyncGenerator[Iterable[Change], None]:
        """What one connection brings, a full list first if one is needed. Ends with the connection."""
        if self._broken_since is not None and self._clock.now() - self._broken_since > self._patience.memory:
            self._version = ""
        if not self._version:
            yield (Restarted(),)
            if not self._streams_lists:
                next_page = ""
                while page := await self._page(next_page):
                    yield map(Added, page.items)
                    if not (next_page := page.next):
                        break
                self._version = page.version
                yield (Synced(page.version),)
        started, told = self._clock.now(), 0
        stream = await self._open()
        try:
            lines = Lines(stream)
            while batch := await self._batch(lines):
                told += len(batch)
                self._failures, self._broken_since = 0, None
                yield map(self._change, batch)
        finally:
            stream.close()
        # The end of a watch is normal, but one that ends at once, again and again, would be a busy loop.
        if not self._version or (not told and self._clock.now() - started < self._patience.shortest):
            raise errors.Unreachable(f"cannot {self._doing}: the server ended the watch at once")

    def delay_after(self, error: ApiError) -> float:
        """Seconds to wait after a failure; also learns from it where to go on."""
        self._failures += 1
        if self._broken_since is None:
            self._broken_since = self._clock.now()
        match error:
            case errors.Invalid() if not self._version and self._streams_lists:
                self._streams_lists = False  # an older server; if the selectors are wrong, the list will say so
                return 0.0
            case errors.Gone():
                self._version = ""
                return self._patience.backoff.delay(self._failures - 1, self._random)  # the first is nobody's fault
            case errors.NotFound():
                self._version = ""  # the resource itself is gone; should it come back, nothing of it is the same
        delay = self._patience.backoff.delay(self._failures, self._random)
        return max(delay, error.retry_after) if isinstance(error, errors.Throttled) else delay

    async def _page(self, next_page: str) -> decoding.Page:
        return await self._client.list(
            self._resource, namespace=self._namespace, labels=self._labels, fields=self._fields, next=next_page
        )

    async def _open(self) -> Stream:
        life = self._patience.life * self._random.uniform(0.5, 1.0)
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, int(life))),
            "labelSelector": self._labels,
            "fieldSelector": self._fields,
            "resourceVersion": self._version,
        }
        if not self._version:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        path = self._resource.collection(self._namespace)
        return await self._client.open(path, doing=self._doing, query=query, accept="application/json")

    async def _batch(self, lines: Lines) -> list[bytes]:
        try:
            async with asyncio.timeout(self._patience.idle):
                return await lines.batch()
        except TimeoutError:
            silence = f"nothing was heard for {self._patience.idle:g} s, not even a bookmark"
            raise errors.Unreachable(f"cannot {self._doing}: {silence}") from None

    def _change(self, line: bytes) -> Change:
        try:
            kind, obj = decoding.parse_event(line, keep_managed_fields=self._client.keep_managed_fields)
        except msgspec.DecodeError as error:
            raise errors.Unreachable(f"cannot {self._doing}: the server sent something unreadable ({error})") from None
        if isinstance(obj, errors.Status):
            raise errors.from_status(obj, self._doing)
        version = obj.metadata.resource_version
        if kind == "BOOKMARK":
            is_synced, self._version = bool(self._version), version
            return Bookmark(version) if is_synced else Synced(version)
        if self._version:
            self._version = version
        return _CHANGES[kind](obj)


_CHANGES: dict[str, type[Added | Modified | Deleted]] = {"ADDED": Added, "MODIFIED": Modified, "DELETED": Deleted}
