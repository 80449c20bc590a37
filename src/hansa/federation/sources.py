"""The source controller: gives each Source and ClusterSource its rights in this cluster, and takes them when it goes.

Deletion is explicit: owner references cannot lead from a cluster-scoped binding to a Source in a namespace.
"""

import contextlib
import logging
import random as randomness
from collections.abc import Callable, Iterator
from typing import Final

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.federation import api, source_objects
from hansa.federation.api import CLUSTER_SOURCES, SOURCES, BadObject, Source
from hansa.federation.conditions import Conditions
from hansa.federation.owned_objects import OwnedObjects
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics

log = logging.getLogger(__name__)
MANAGER: Final = "hansa-sources"
WORKERS: Final = 4
RESYNC_SECONDS: Final = 300.0  # bindings are not watched: one that an administrator changed is repaired at the next one
REFUSED_SECONDS: Final = 30.0  # until a refused write is tried again, since another object has to change


class Sources:
    """Reconciles the rights of sources in one cluster. `makes_tokens`: service accounts have a Secret with a token."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        conditions: Conditions,
        makes_tokens: bool,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._cluster, self._conditions, self._makes_tokens = cluster, conditions, makes_tokens
        self._stores: dict[Resource, Store] = {}
        self._owned = OwnedObjects(cluster.client, manager=MANAGER, is_ours=source_objects.is_ours, stores=self._stores)
        self._queue: queue.Queue[NamespacedName] = queue.Queue("sources", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "sources", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained."""
        async with contextlib.AsyncExitStack() as stack:
            for resource in (SOURCES, CLUSTER_SOURCES):
                store = await stack.enter_async_context(self._cluster.informers.share(Scope(resource)))
                self._stores[resource] = store
                stack.callback(store.freshness.listen(lambda _: self._enqueue_all()))
                stack.callback(store.listen(self._queue.add, lambda source: (source.key,)))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        if not all(store.freshness.is_known for store in self._stores.values()):
            return controller.Done()
        obj = self._stores[_resource(key)].get(key)
        if obj is None:
            return controller.Done()
        try:
            source = api.source(obj)
            if obj.is_deleting:
                await self._remove(source)
                return controller.Done()
            await self._ensure(source)
        except BadObject as error:
            await self._conditions.set_not_ready(_resource(obj.key), obj, error.reason, str(error))
            return controller.Done()
        except (errors.Denied, errors.Invalid, errors.NotFound) as error:  # NotFound: there is no such namespace
            await self._conditions.set_not_ready(_resource(obj.key), obj, "Refused", str(error))
            return controller.After(REFUSED_SECONDS)
        return controller.After(RESYNC_SECONDS)

    async def _ensure(self, source: Source) -> None:
        await self._owned.add_finalizer(source.resource, source.object, keys.SOURCE_FINALIZER)
        token = ""
        if (account := source.account) is not None:
            await self._ensure_account(account)
            token = await self._ensure_token(account) if self._makes_tokens else ""
        for resource, binding in source_objects.bindings(source):
            await self._ensure_binding(resource, binding, source)
        await self._conditions.set_ready(source.resource, source.object, "its rights are granted", tokenSecret=token)

    async def _ensure_account(self, account: NamespacedName) -> None:
        with contextlib.suppress(errors.AlreadyExists):
            await self._owned.create(resources.SERVICE_ACCOUNTS, source_objects.service_account(account))
            log.info("service account created", extra={"account": str(account)})

    async def _ensure_token(self, account: NamespacedName) -> str:
        """A Secret with a token, listed in the service account as clusters did by themselves before Kubernetes 1.24."""
        wanted = source_objects.token(account)
        try:
            await self._owned.create(resources.SECRETS, wanted)
        except errors.AlreadyExists:
            have = await self._owned.find(resources.SECRETS, wanted.name, namespace=wanted.namespace)
            if have is None or have.annotations.get(keys.TOKEN_ACCOUNT) != account.name:
                message = f"Secret {wanted.key} exists and is no token of service account {account.name}: delete it"
                raise BadObject("TokenNameTaken", message) from None
        found = await self._owned.find(resources.SERVICE_ACCOUNTS, account.name, namespace=account.namespace)
        if found is not None and {"name": wanted.name} not in (listed := found.get("secrets") or []):
            patch = {"secrets": [*listed, {"name": wanted.name}], "metadata": {"resourceVersion": found.version}}
            await self._owned.patch(resources.SERVICE_ACCOUNTS, found, patch)
        return wanted.name

    async def _ensure_binding(self, resource: Resource, wanted: Object, source: Source) -> None:
        try:
            await self._owned.create(resource, wanted)
        except errors.AlreadyExists:
            have = await self._owned.find(resource, wanted.name, namespace=wanted.namespace)
            if have is None or not source_objects.is_of(have, source):
                message = f"{resource.kind} {wanted.key} exists and is not of this source: delete it, or rename one"
                raise BadObject("NameTaken", message) from None
            if have.get("roleRef") != wanted.get("roleRef"):  # cannot be changed
                await self._owned.delete(resource, have)
                await self._owned.create(resource, wanted)
            else:
                await self._owned.ensure(resource, have, wanted, source_objects.binding_patches)

    async def _remove(self, source: Source) -> None:
        """Delete what was made for a source, then release it."""
        if keys.SOURCE_FINALIZER not in source.object.metadata.finalizers:
            return
        for resource, binding in source_objects.bindings(source):
            await self._delete(resource, binding.key, lambda have: source_objects.is_of(have, source))
        account = source.account
        if account is not None and not any(other.account == account for other in self._others(source)):
            token = source_objects.token_name(account)
            await self._delete(resources.SECRETS, token, source_objects.is_made)
            await self._delete(resources.SERVICE_ACCOUNTS, account, source_objects.is_made)
        await self._owned.remove_finalizer(source.resource, source.object, keys.SOURCE_FINALIZER)

    async def _delete(self, resource: Resource, name: NamespacedName, is_ours: Callable[[Object], bool]) -> None:
        have = await self._owned.find(resource, name.name, namespace=name.namespace)
        if have is not None and is_ours(have):
            await self._owned.delete(resource, have)

    def _others(self, source: Source) -> Iterator[Source]:
        """The sources that stay when this one is deleted."""
        for store in self._stores.values():
            for obj in store.values():
                if obj.uid != source.object.uid and not obj.is_deleting:
                    with contextlib.suppress(BadObject):
                        yield api.source(obj)

    def _enqueue_all(self) -> None:
        for store in self._stores.values():
            for key in store:
                self._queue.add(key)


def _resource(key: NamespacedName) -> Resource:
    return SOURCES if key.namespace else CLUSTER_SOURCES
