"""The placements of tenants' namespaces, in the status of their VirtualClusters: tenants can't write them there.

vc-scheduler writes them, syncers read them. The annotation of a namespace shows them, and users edit it to ask for
others; deciding about that is left to the scheduler.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from hansa.control.informer import Informers, Scope
from hansa.control.store import Store
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Unknown
from hansa.runtime import listeners
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, BadVirtualCluster, PlacementRecord

KEY: Final = "placement-records"  # the index of VirtualClusters by tenant key
_ANNOTATIONS: Final = (keys.PLACEMENTS, keys.PLACEMENTS.replace(*keys.POOL, 1), keys.PLANNED)
Notify = Callable[[str, str], None]


@dataclass(slots=True)
class _Batch:
    """Records that one request writes: many namespaces of a tenant are placed at once."""

    records: dict[str, PlacementRecord | None] = field(default_factory=dict)
    error: Exception | None = field(default_factory=lambda: errors.Unreachable("cannot write placements: interrupted"))


class PlacementRecords:
    """The records of all tenants by tenant key and namespace."""

    def __init__(self, meta: Client, informers: Informers) -> None:
        self._meta, self._informers = meta, informers
        self._vcs: Store | None = None
        self._known: dict[str, Mapping[str, PlacementRecord]] = {}
        self._batches: dict[str, _Batch] = {}
        self._locks: dict[str, asyncio.Lock] = collections.defaultdict(asyncio.Lock)
        self._listeners: listeners.Listeners[Notify] = listeners.Listeners()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["PlacementRecords"]:
        """Watch the records for as long as the caller stays inside."""
        async with self._informers.share(Scope(VIRTUAL_CLUSTERS)) as self._vcs:
            self._vcs.index(KEY, _root)
            end = self._vcs.listen(self._changed, _root)
            try:
                yield self
            finally:
                end()

    def listen(self, notify: Notify) -> Callable[[], None]:
        """Call `notify` with tenant key and namespace when a record changes. The returned function removes it."""
        return self._listeners.add(notify)

    def has_any(self, tenant: str) -> bool:
        """Whether a namespace of the tenant was ever placed with records."""
        return any(_records(vc) is not None for vc in self._found(tenant))

    def names(self, tenant: str) -> Collection[str]:
        """The namespaces that have a record, also if they are gone."""
        return self._known.get(tenant, {}).keys()

    def of(self, tenant: str, namespace: Object) -> PlacementRecord | None:
        """The record of a namespace; one of a former namespace of the name does not count."""
        record = self._known.get(tenant, {}).get(namespace.name)
        return record if record is not None and record.uid == namespace.uid else None

    def placed(self, tenant: str, namespace: Object) -> frozenset[str] | Unknown:
        """The super clusters of a namespace. Unknown while its annotation has something that is not decided yet."""
        record = self.of(tenant, namespace)
        if record is not None:
            return frozenset(cluster for cluster, number in record.slices.items() if number > 0)
        if any(key in namespace.annotations for key in _ANNOTATIONS):
            return Unknown(f"vc-scheduler has not decided the placements of Namespace {namespace.name}")
        return frozenset()

    def all_placed(self, tenant: str) -> frozenset[str]:
        """The super clusters where any namespace of the tenant is placed."""
        records = self._known.get(tenant, {}).values()
        return frozenset(cluster for one in records for cluster, number in one.slices.items() if number > 0)

    async def write(self, tenant: str, namespace: Object, slices: Mapping[str, int], slice_: Mapping[str, str]) -> None:
        """Write the record of a namespace."""
        await self._write(tenant, namespace.name, PlacementRecord(namespace.uid, slices, slice_))

    async def remove(self, tenant: str, namespace: str) -> None:
        """Remove the record of a namespace, if there is one."""
        if namespace in self.names(tenant):
            await self._write(tenant, namespace, None)

    async def _write(self, tenant: str, namespace: str, record: PlacementRecord | None) -> None:
        """Concurrent calls for a tenant are one request."""
        batch = self._batches.setdefault(tenant, _Batch())
        batch.records[namespace] = record
        async with self._locks[tenant]:
            if self._batches.get(tenant) is batch:
                del self._batches[tenant]
                try:
                    await self._patch(tenant, batch.records)
                    batch.error = None
                except errors.ApiError as error:
                    batch.error = error
        if batch.error is not None:
            raise batch.error

    async def _patch(self, tenant: str, records: Mapping[str, PlacementRecord | None]) -> None:
        known = self._known.get(tenant, {})
        for vc in self._found(tenant):
            written = {name: replacement(known.get(name), record) for name, record in records.items()}
            patch = {"metadata": {"uid": vc.uid}, "status": {"placements": written}}
            answer = await self._meta.patch(
                VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status"
            )
            assert self._vcs is not None  # it has the VirtualCluster
            self._vcs.observe(answer)

    def _found(self, tenant: str) -> list[Object]:
        return [] if self._vcs is None else self._vcs.find(KEY, tenant)

    def _changed(self, tenant: str) -> None:
        before = self._known.pop(tenant, {})
        if found := self._found(tenant):
            self._known[tenant] = now = _records(found[0]) or {}
        else:
            now = {}
        for name in before.keys() | now.keys():
            if before.get(name) != now.get(name):
                for notify in self._listeners:
                    notify(tenant, name)


def _root(vc: Object) -> Iterable[str]:
    with contextlib.suppress(BadVirtualCluster):
        return (api.virtual_cluster(vc).root,)
    return ()


def _records(vc: Object) -> Mapping[str, PlacementRecord] | None:
    return api.virtual_cluster(vc).status.placements


def replacement(before: PlacementRecord | None, after: PlacementRecord | None) -> object:
    """The merge patch of a record. What it has no more has to be null, since a merge keeps what is not named."""
    if after is None:
        return None
    former = before or PlacementRecord()
    slices = dict.fromkeys(former.slices) | dict(after.slices)
    return {"uid": after.uid, "slices": slices, "slice": dict.fromkeys(former.slice) | dict(after.slice)}
