"""The caches of one cluster that decisions read, and whether the cluster is known now.

An unreachable cluster, or a resource that is not listed, makes the whole cluster unknown: a pod's references must be
known where the pod is. A resource that the credentials may not read makes only that resource unknown.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from hansa.control import informer, merged_store
from hansa.control.merged_store import Cache
from hansa.engine.cluster import Cluster
from hansa.kube.resource import Resource
from hansa.runtime import listeners


class ClusterCaches:
    """The caches of one cluster. `unknown_reason` is why all of them are unknown, empty while they are known."""

    def __init__(self, cluster: Cluster, stores: Mapping[Resource, Cache]) -> None:
        self.cluster, self.stores = cluster, stores
        self._listeners: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self.unknown_reason = self._unknown_reason()
        self._forbidden = self._forbidden_resources()

    def unknown_reason_of(self, resource: Resource) -> str:
        """Why the cache of a resource is unknown; empty while it is known."""
        return self.unknown_reason or self._forbidden.get(resource, "")

    def is_forbidden(self, resource: Resource) -> bool:
        """Whether the cluster is reachable and its credentials may not read the resource."""
        return not self.unknown_reason and resource in self._forbidden

    async def listed(self, resources: Iterable[Resource]) -> None:
        """Wait, however long, until each of these had its first full list, or is forbidden."""
        caches = [self.stores[resource].freshness for resource in resources]
        changed = asyncio.Event()
        with contextlib.ExitStack() as stack:
            for cache in caches:
                stack.callback(cache.listen(lambda _: changed.set()))
            while not all(cache.has_synced or cache.is_forbidden for cache in caches):
                changed.clear()
                await changed.wait()

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` when the cluster or a resource becomes known or unknown. The returned function removes it."""
        return self._listeners.add(notify)

    def refresh(self) -> None:
        """Compute again what is unknown, and notify listeners of a change."""
        before = bool(self.unknown_reason), self._forbidden.keys()
        self.unknown_reason, self._forbidden = self._unknown_reason(), self._forbidden_resources()
        if before != (bool(self.unknown_reason), self._forbidden.keys()):
            for notify in self._listeners:
                notify()

    def _unknown_reason(self) -> str:
        if self.cluster.health.error:
            return self.cluster.health.error
        for resource, cache in self.stores.items():
            if not cache.freshness.is_known and not cache.freshness.is_forbidden:
                return f"{resource}: {cache.freshness.error}"
        return ""

    def _forbidden_resources(self) -> dict[Resource, str]:
        caches = ((resource, cache.freshness) for resource, cache in self.stores.items())
        return {resource: known.error for resource, known in caches if known.is_forbidden and not known.is_known}


@contextlib.asynccontextmanager
async def opened(cluster: Cluster, scopes: Iterable[informer.Scope]) -> AsyncIterator[ClusterCaches]:
    """The caches of a cluster, one for each scope's resource, for as long as the caller stays inside."""
    async with contextlib.AsyncExitStack() as stack:
        stores = {scope.resource: await stack.enter_async_context(cache(cluster, scope)) for scope in scopes}
        side = ClusterCaches(cluster, stores)
        stack.callback(cluster.health.listen(side.refresh))
        for store in stores.values():
            stack.callback(store.freshness.listen(lambda _: side.refresh()))
        yield side


@contextlib.asynccontextmanager
async def cache(cluster: Cluster, scope: informer.Scope) -> AsyncIterator[Cache]:
    """The cache of a scope, limited to the namespaces that the cluster's credentials may read."""
    scopes = cluster.scopes(scope)
    async with contextlib.AsyncExitStack() as stack:
        stores = {one.namespace: await stack.enter_async_context(cluster.informers.share(one)) for one in scopes}
        yield stores[scope.namespace] if scopes == [scope] else merged_store.MergedStore(stores)
