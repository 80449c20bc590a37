"""What is left in the super cluster of tenants that are gone: namespaces with all that is in them, service ranges.

A VirtualCluster counts as gone when the meta cluster says so to a question asked now; one that cannot be seen is not.
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

log = logging.getLogger(__name__)
WORKERS = 4
OWNER = "owner"  # the index by the place of the VirtualCluster
SCOPES = {
    resources.NAMESPACES: Scope(resources.NAMESPACES, labels=keys.UPPER),
    SERVICE_CIDRS: Scope(SERVICE_CIDRS, labels=OURS),
}


class Thing(NamedTuple):
    """A cluster-wide object of ours in the super cluster."""

    resource: Resource
    name: str


class Purging:
    """Deletes what belonged to VirtualClusters of this meta cluster that are gone, or live again under another uid."""

    def __init__(
        self,
        meta: Client,
        meta_informers: Informers,
        meta_id: str,
        *,
        super_cluster: Cluster,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._meta, self._meta_informers, self._meta_id, self._super = meta, meta_informers, meta_id, super_cluster
        self._stores: dict[Resource, store.Store] = {}
        self._queue: queue.Queue[Thing] = queue.Queue("purging", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "purging", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Look for what is left until drained."""
        async with contextlib.AsyncExitStack() as stack:
            self._vcs = await stack.enter_async_context(self._meta_informers.share(Scope(VIRTUAL_CLUSTERS)))
            stack.callback(self._vcs.knowledge.listen(lambda _: self._look_at_all()))
            for resource, scope in SCOPES.items():
                cache = await stack.enter_async_context(self._super.informers.share(scope))
                self._stores[resource] = cache
                cache.index(OWNER, _places)
                stack.callback(cache.listen(self._queue.add, functools.partial(_thing, resource)))
            stack.callback(self._vcs.listen(self._look_at, lambda vc: (vc.key,)))
            await self._controller.run()

    def drain(self) -> None:
        """Begin nothing new."""
        self._controller.drain()

    def _look_at(self, place: NamespacedName) -> None:
        for resource, cache in self._stores.items():
            for obj in cache.find(OWNER, place):
                self._queue.add(Thing(resource, obj.name))

    def _look_at_all(self) -> None:
        for resource, cache in self._stores.items():
            for obj in cache.values():
                self._queue.add(Thing(resource, obj.name))

    async def _reconcile(self, thing: Thing) -> controller.Outcome:
        left = self._stores[thing.resource].get(NamespacedName("", thing.name))
        owner = owners.of(left) if left is not None else None
        if left is None or owner is None or left.is_leaving or not self._seems_gone(owner):
            return controller.Done()
        if not await self._is_gone(owner):
            return controller.Done()
        with contextlib.suppress(errors.NotFound, errors.Conflict):  # a conflict is the uid's: it is another one now
            await self._super.client.delete(thing.resource, thing.name, uid=left.uid)
        log.info("removed what a tenant left", extra={"what": f"{thing.resource} {thing.name}", "tenant": owner.key})
        return controller.Done()

    def _seems_gone(self, owner: Owner) -> bool:
        if owner.meta != self._meta_id or not self._vcs.knowledge.is_known:
            return False
        return not _is(self._vcs.get(owner.place), owner)

    async def _is_gone(self, owner: Owner) -> bool:
        try:
            return not _is(await self._meta.get(VIRTUAL_CLUSTERS, owner.name, namespace=owner.namespace), owner)
        except errors.NotFound:
            return True


def _is(vc: Object | None, owner: Owner) -> bool:
    return vc is not None and vc.uid == owner.uid


def _thing(resource: Resource, obj: Object) -> tuple[Thing]:
    return (Thing(resource, obj.name),)


def _places(obj: Object) -> Iterable[NamespacedName]:
    owner = owners.of(obj)
    return () if owner is None else (owner.place,)
