"""Serves the Multi-Cluster Services API in one cluster: ServiceExports become ServiceImports, these derived Services.

What is made is computed by `model.translation.federation.exports`. Copying ServiceImports and slices to targets is left
to the engine; there, the agent of the target makes the derived Services.
"""

import contextlib
import random as randomness
from collections.abc import Iterable
from typing import Final

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.federation.owned_objects import OwnedObjects
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.translation.common import services
from hansa.model.translation.federation import exports
from hansa.model.translation.federation.exports import SERVICE_EXPORTS, SERVICE_IMPORTS
from hansa.runtime import clock, metrics, timestamps

NAME: Final = "multicluster-services"
MANAGER: Final = "hansa-multicluster-services"
WORKERS: Final = 4
SYNC_DEADLINE: Final = 600.0  # seconds for the first lists
_READ: Final = (SERVICE_EXPORTS, SERVICE_IMPORTS, resources.SERVICES, resources.ENDPOINT_SLICES)
_BY_SERVICE: Final = "any service"
_BY_EXPORT: Final = "export"
_BY_DERIVED: Final = "derived Service"


class MulticlusterServices:
    """Reconciles the names of ServiceExports and ServiceImports of one cluster; `name` is that of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._cluster, self._name, self._clock = cluster, name, clock
        self._queue: queue.Queue[NamespacedName] = queue.Queue(NAME, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )
        self._stores: dict[Resource, Store] = {}
        self._owned = OwnedObjects(cluster.client, manager=MANAGER, is_ours=services.is_ours, stores=self._stores)

    async def run(self) -> None:
        """Reconcile until drained, once all that is read has been listed."""
        async with contextlib.AsyncExitStack() as stack:
            for resource in _READ:
                store = await stack.enter_async_context(self._cluster.informers.share(Scope(resource)))
                self._stores[resource] = store
            caches = [store.freshness for store in self._stores.values()]
            if not await self._controller.synced(caches, within=SYNC_DEADLINE):
                return
            slices = self._stores[resources.ENDPOINT_SLICES]
            slices.index(_BY_SERVICE, _service_of)
            slices.index(_BY_EXPORT, _export_of)
            for resource in (SERVICE_EXPORTS, SERVICE_IMPORTS):
                self._stores[resource].index(_BY_DERIVED, lambda one: (exports.derived_key(one.key),))
            self._name = self._name or await self._cluster.identify()
            for store in self._stores.values():
                stack.callback(store.listen(self._queue.add, _concerned))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    async def _reconcile(self, name: NamespacedName) -> controller.Outcome:
        export = self._stores[SERVICE_EXPORTS].get(name)
        if export is not None and not export.is_deleting:
            await self._export(export)
        imported = self._stores[SERVICE_IMPORTS].get(name)
        if imported is not None and not imported.is_deleting and services.is_ours(imported):
            await self._derive(imported)
        for resource in (SERVICE_EXPORTS, SERVICE_IMPORTS):  # whose derived Service may have been another's
            for one in self._stores[resource].find(_BY_DERIVED, name):
                self._queue.add(one.key)
        return controller.Done()

    async def _export(self, export: Object) -> None:
        service = self._stores[resources.SERVICES].get(export.key)
        reason, message = exports.problem(service)
        have = self._stores[SERVICE_IMPORTS].get(export.key)
        derived = self._stores[resources.SERVICES].get(exports.derived_key(export.key))
        taken = exports.taken_import(export, have) or exports.taken_service(have, derived)
        if service is None or reason or taken:
            await self._unexport(export, have)
        else:
            await self._owned.ensure(
                SERVICE_IMPORTS, have, exports.service_import(service, export), exports.import_patches
            )
            await self._write_slices(export)
        await self._report(SERVICE_EXPORTS, export, ("Valid", not reason, reason, message), exports.conflict(taken))

    async def _unexport(self, export: Object, imported: Object | None) -> None:
        if imported is not None and exports.is_owned(imported, export):
            await self._owned.delete(SERVICE_IMPORTS, imported)
        for one in self._stores[resources.ENDPOINT_SLICES].find(_BY_EXPORT, export.key):
            if exports.is_owned(one, export):
                await self._owned.delete(resources.ENDPOINT_SLICES, one)

    async def _write_slices(self, export: Object) -> None:
        store = self._stores[resources.ENDPOINT_SLICES]
        have = {one.name: one for one in store.find(_BY_EXPORT, export.key) if exports.is_owned(one, export)}
        for one in store.find(_BY_SERVICE, export.key):
            wanted = exports.exported_slice(one, export, self._name)
            current = have.pop(wanted.name, None)
            await self._owned.ensure(resources.ENDPOINT_SLICES, current, wanted, exports.slice_patches)
        for one in have.values():
            await self._owned.delete(resources.ENDPOINT_SLICES, one)

    async def _derive(self, imported: Object) -> None:
        wanted = exports.derived_service(imported)
        have = self._stores[resources.SERVICES].get(wanted.key)
        taken = exports.taken_service(imported, have)
        if taken or imported.status.get("conditions"):
            await self._report(SERVICE_IMPORTS, imported, exports.conflict(taken))
        if taken:
            return
        made = await self._owned.ensure(resources.SERVICES, have, wanted, exports.derived_patches)
        await self._owned.patch(SERVICE_IMPORTS, imported, exports.import_addresses(imported, made))

    async def _report(self, resource: Resource, obj: Object, *wanted: tuple[str, bool, str, str]) -> None:
        now = timestamps.time(self._clock.wall())
        before = obj.status.get("conditions") or []
        after = exports.conditions(before, wanted, now=now, generation=obj.metadata.generation)
        if after != before:
            await self._owned.patch(resource, obj, {"status": {"conditions": after}}, subresource="status")


def _service_of(one: Object) -> Iterable[NamespacedName]:
    name = one.labels.get(keys.SERVICE_NAME)
    return (NamespacedName(one.namespace, name),) if name and keys.EXPORTED_SERVICE not in one.labels else ()


def _export_of(one: Object) -> Iterable[NamespacedName]:
    name = one.labels.get(keys.EXPORTED_SERVICE)
    return (NamespacedName(one.namespace, name),) if name else ()


def _concerned(obj: Object) -> Iterable[NamespacedName]:
    """The names to reconcile after a change: of an export or import, of a Service, or of that of a slice."""
    name = obj.labels.get(keys.EXPORTED_SERVICE) or obj.labels.get(keys.SERVICE_NAME) or obj.name
    return (NamespacedName(obj.namespace, name),)
