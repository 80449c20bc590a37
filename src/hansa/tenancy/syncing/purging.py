"""Deletes namespaces and ServiceCIDRs in a super cluster whose VirtualCluster does not exist any more.

vc-syncer runs it for each super cluster. It reads the VirtualCluster from the API server before each deletion: an error
or a stale cache does not count as deleted.
"""

import contextlib
import functools
import logging
import random as randomness
from collections.abc import Iterable
from typing import NamedTuple

from hansa.control import controller, queue, store
from hansa.control.informer import Informers, Scope
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.service_ranges import OURS, SERVICE_CIDRS
from hansa.tenancy.syncing.shares import Everything, Shares

log = logging.getLogger(__name__)
WORKERS = 4
OWNER = "owner"  # the index by the key of the VirtualCluster
SCOPES = {
    resources.NAMESPACES: Scope(resources.NAMESPACES, labels=keys.UPPER),
    SERVICE_CIDRS: Scope(SERVICE_CIDRS, labels=OURS),
}


class OwnedKey(NamedTuple):
    """The key of a cluster-scoped object of a tenant in the super cluster."""

    resource: Resource
    name: str


class Purging:
    """Deletes objects of VirtualClusters of this meta cluster that were deleted, or recreated with another uid.

    With `shares`, only those of the tenants that this replica serves.
    """

    def __init__(
        self,
        meta: Client,
        meta_informers: Informers,
        meta_id: str,
        *,
        super_cluster: Cluster,
        shares: Shares | None = None,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._meta, self._meta_informers, self._meta_id, self._super = meta, meta_informers, meta_id, super_cluster
        self._shares = shares or Everything()
        self._stores: dict[Resource, store.Store] = {}
        self._queue: queue.Queue[OwnedKey] = queue.Queue("purging", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "purging", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained."""
        async with contextlib.AsyncExitStack() as stack:
            self._vcs = await stack.enter_async_context(self._meta_informers.share(Scope(VIRTUAL_CLUSTERS)))
            stack.callback(self._vcs.freshness.listen(lambda _: self._enqueue_all()))
            for resource, scope in SCOPES.items():
                cache = await stack.enter_async_context(self._super.informers.share(scope))
                self._stores[resource] = cache
                cache.index(OWNER, _vc_names)
                stack.callback(cache.listen(self._queue.add, functools.partial(_key, resource)))
            stack.callback(self._vcs.listen(self._enqueue, lambda vc: (vc.key,)))
            stack.callback(self._shares.listen(lambda _: self._enqueue_all()))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    def _enqueue(self, vc_name: NamespacedName) -> None:
        for resource, cache in self._stores.items():
            for obj in cache.find(OWNER, vc_name):
                self._queue.add(OwnedKey(resource, obj.name))

    def _enqueue_all(self) -> None:
        for resource, cache in self._stores.items():
            for obj in cache.values():
                self._queue.add(OwnedKey(resource, obj.name))

    async def _reconcile(self, key: OwnedKey) -> controller.Outcome:
        found = self._stores[key.resource].get(NamespacedName("", key.name))
        owner = owners.of(found) if found is not None else None
        if found is None or owner is None or found.is_deleting or not self._seems_gone(owner):
            return controller.Done()
        if not self._shares.owns(owner.key) or not await self._is_gone(owner):
            return controller.Done()
        async with self._shares.write(owner.key):
            with contextlib.suppress(errors.NotFound, errors.Conflict):  # a conflict is the uid's: it was recreated
                await self._super.client.delete(key.resource, key.name, uid=found.uid)
        log.info("orphan deleted", extra={"kind": key.resource.kind, "object": key.name, "tenant": owner.key})
        return controller.Done()

    def _seems_gone(self, owner: Owner) -> bool:
        if owner.meta != self._meta_id or not self._vcs.freshness.is_known:
            return False
        return not _is(self._vcs.get(owner.vc_name), owner)

    async def _is_gone(self, owner: Owner) -> bool:
        try:
            return not _is(await self._meta.get(VIRTUAL_CLUSTERS, owner.name, namespace=owner.namespace), owner)
        except errors.NotFound:
            return True


def _is(vc: Object | None, owner: Owner) -> bool:
    return vc is not None and vc.uid == owner.uid


def _key(resource: Resource, obj: Object) -> tuple[OwnedKey]:
    return (OwnedKey(resource, obj.name),)


def _vc_names(obj: Object) -> Iterable[NamespacedName]:
    owner = owners.of(obj)
    return () if owner is None else (owner.vc_name,)
