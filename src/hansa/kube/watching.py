"""Watches a resource: a full list, then every change to it, over any number of broken connections.

Used by informers. It yields a stream of values, failures included; keeping a cache of them is left to the informer.

    Restarted                a full list follows: the cache may be out of date
    Added …                  its objects
    Synced(version)          the list is complete: objects that are not in it since Restarted do not exist any more
    Added, Modified, Deleted changes, in the server's order
    Bookmark(version)        there was no other change up to this version
    Interrupted(error)       the watch is broken; the cache stays valid, and the watch retries by itself

A broken watch resumes from the last version, without Restarted. After a compaction or a long break Restarted is yielded
again, so a cache that drops at Synced what was not listed sees exactly the differences, with deletions.
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
from hansa.kube.http.limits import ListBudget, TooLarge
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
    """An object was created, or is in the full list."""

    obj: Object


class Modified(msgspec.Struct, frozen=True, gc=False):
    """An object changed."""

    obj: Object


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted, or no longer matches the selectors; this is its last state."""

    obj: Object


class Synced(msgspec.Struct, frozen=True, gc=False):
    """The full list is complete."""

    version: str


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """All changes up to this version were yielded."""

    version: str


class Interrupted(msgspec.Struct, frozen=True):
    """The watch is broken; it is retried in `retry_in` seconds."""

    error: ApiError
    retry_in: float


Change = Restarted | Added | Modified | Deleted | Synced | Bookmark | Interrupted


class _ListNotStreamed(errors.Unreachable):
    """The server does not stream lists as it should: the next list is requested in pages."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The timeouts of a watch, in seconds."""

    idle: float = 150.0  # without a byte; a server sends a bookmark every one or two minutes
    life: float = 600.0  # of one connection at most, so that load is spread anew over the API servers of an address
    shortest: float = 1.0  # a watch that ends sooner, without an event, counts as a failure
    memory: float = 120.0  # after a longer break all is listed anew: a watch without events does not show that it works
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
    """All changes to the objects that match the selectors. It never ends; the caller closes it."""
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
        self._version = ""  # up to which all changes were yielded; empty: a full list is needed
        self._streams_lists = True  # until the server refuses to stream a list
        self._failures = 0
        self._broken_since: float | None = None

    async def connection(self) -> AsyncGenerator[Iterable[Change], None]:
        """The changes of one connection, a full list first if one is needed. Ends with the connection."""
        if self._broken_since is not None and self._clock.now() - self._broken_since > self._patience.memory:
            self._version = ""
        if not self._version:
            yield (Restarted(),)
            if not self._streams_lists:
                version = ""
                async with contextlib.aclosing(self._pages()) as pages:
                    async for page in pages:
                        version = page.version
                        yield map(Added, page.items)
                self._version = version
                yield (Synced(version),)
        if self._version and self._broken_since is not None:
            await self._check_version()
        started, count = self._clock.now(), 0
        budget = ListBudget(self._client.limits, self._doing)
        stream = await self._open()
        try:
            lines = Lines(stream, doing=self._doing, limit=self._client.limits.line)
            while batch := await self._batch(lines):
                count += len(batch)
                self._failures, self._broken_since = 0, None
                if not self._version:
                    budget.spend(len(batch), sum(map(len, batch)))
                yield map(self._change, batch)
        finally:
            stream.close()
        # The server ends each watch at some time, but a retry of one that ends at once would be a busy loop.
        if not self._version or (not count and self._clock.now() - started < self._patience.shortest):
            raise errors.Unreachable(f"cannot {self._doing}: the server ended the watch at once")

    def delay_after(self, error: ApiError) -> float:
        """Seconds to wait after a failure, which also decides where the watch resumes."""
        self._failures += 1
        if self._broken_since is None:
            self._broken_since = self._clock.now()
        match error:
            case errors.Invalid() | _ListNotStreamed() if not self._version and self._streams_lists:
                self._streams_lists = False  # an older server; invalid selectors fail the list as well
                return 0.0
            case errors.Gone():
                self._version = ""
                return self._patience.backoff.delay(
                    self._failures - 1, self._random
                )  # the first is a compaction, and normal
            case errors.NotFound():
                self._version = ""  # the resource itself was removed; if it is created again, versions start anew
        delay = self._patience.backoff.delay(self._failures, self._random)
        return max(delay, error.retry_after) if isinstance(error, errors.Throttled) else delay

    async def _check_version(self) -> None:
        """Raise Gone if the server's etcd was restored from a backup: a watch from a later version would be silent.

        A refusal is no answer: a server that starts refuses all until it knows its roles.
        """
        with contextlib.suppress(errors.Invalid, TooLarge):
            await self._client.list(
                self._resource,
                namespace=self._namespace,
                labels=self._labels,
                fields=self._fields,
                limit=1,
                version=self._version,
                version_match="NotOlderThan",
            )

    def _pages(self) -> AsyncGenerator[decoding.Page, None]:
        return self._client.pages(self._resource, namespace=self._namespace, labels=self._labels, fields=self._fields)

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
            silence = f"no event and no bookmark was received for {self._patience.idle:g} s"
            raise errors.Unreachable(f"cannot {self._doing}: {silence}") from None

    def _change(self, line: bytes) -> Change:
        try:
            kind, obj = decoding.parse_event(line, keep_managed_fields=self._client.keep_managed_fields)
        except msgspec.DecodeError as error:
            raise errors.Unreachable(f"cannot {self._doing}: an event cannot be decoded ({error})") from None
        if isinstance(obj, errors.Status):
            raise errors.from_status(obj, self._doing)
        version = obj.metadata.resource_version
        if kind not in _EVENT_TYPES:
            raise errors.Unreachable(f"cannot {self._doing}: the server sent an event of an unknown type")
        if not version:  # with it, a broken watch could not resume, and the next bookmark would look like a list's end
            raise errors.Unreachable(f"cannot {self._doing}: the server sent an event without a resourceVersion")
        if kind == "BOOKMARK":
            is_synced = bool(self._version)
            if not is_synced and obj.annotations.get(INITIAL_EVENTS_END) != "true":
                raise _ListNotStreamed(f"cannot {self._doing}: the server sent a bookmark before the end of the list")
            self._version = version
            return Bookmark(version) if is_synced else Synced(version)
        if self._version:
            self._version = version
        return _CHANGES[kind](obj)


_CHANGES: dict[str, type[Added | Modified | Deleted]] = {"ADDED": Added, "MODIFIED": Modified, "DELETED": Deleted}
_EVENT_TYPES = frozenset({*_CHANGES, "BOOKMARK"})
