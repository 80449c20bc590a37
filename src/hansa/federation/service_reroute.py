"""Reroutes the Services of a source cluster that select proxy pods, and marks the Ingresses that lead to them.

The patches are computed by `model.translation.federation.reroute`; copying to targets is left to the engine. Few of the
changes of pods concern it: only labels that are new in a namespace, or gone from it.
"""

import collections
import contextlib
import random as randomness
from typing import Any, Final, NamedTuple

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.engine.view import clusters
from hansa.federation import api, owned_objects
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.translation.federation import reroute
from hansa.runtime import clock, metrics

NAME: Final = "service-reroute"
MANAGER: Final = "hansa-service-reroute"
WORKERS: Final = 4
SYNC_DEADLINE: Final = 600.0  # seconds for the first lists
_BY_LABELS: Final = "namespace and labels"


class _Ref(NamedTuple):
    """A Service or an Ingress."""

    resource: Resource
    name: NamespacedName


class _LabelSet(NamedTuple):
    """Labels that at least one proxy pod of a namespace has."""

    namespace: str
    labels: frozenset[tuple[str, str]]


def _label_set(pod: Object) -> tuple[_LabelSet]:
    return (_LabelSet(pod.namespace, frozenset(pod.labels.items())),)


class ServiceReroute:
    """Reconciles the Services and Ingresses of the `upper` cluster. `labels_global` as in `reroute.service_patch`."""

    def __init__(
        self,
        upper: Cluster,
        *,
        labels_global: bool,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._labels_global = upper, labels_global
        self._queue: queue.Queue[_Ref] = queue.Queue(NAME, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )
        self._label_sets: dict[str, dict[_LabelSet, dict[str, str]]] = collections.defaultdict(dict)

    async def run(self) -> None:
        """Reconcile until drained, once all proxy pods are known: without them every Service would be restored."""
        async with contextlib.AsyncExitStack() as stack:
            scopes = (
                Scope(resources.PODS, fields=api.PROXY_PODS),
                Scope(resources.SERVICES),
                Scope(resources.INGRESSES),
            )
            stores = [await stack.enter_async_context(self._upper.informers.share(scope)) for scope in scopes]
            caches = [store.freshness for store in stores]
            if not await self._controller.synced(caches, within=SYNC_DEADLINE):
                return
            self._pods, self._services, self._ingresses = stores
            self._fields = owned_objects.fields_only(
                self._upper.client,
                manager=MANAGER,
                stores={resources.SERVICES: self._services, resources.INGRESSES: self._ingresses},
            )
            self._listen(stack)
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def _listen(self, stack: contextlib.AsyncExitStack) -> None:
        for store in (self._services, self._ingresses):
            store.index(clusters.BY_NAMESPACE, clusters.by_namespace)
        self._pods.index(_BY_LABELS, _label_set)
        self._label_sets.clear()
        stack.callback(self._pods.listen(self._pod_changed, _label_set))
        stack.callback(self._services.listen(self._service_changed, lambda obj: (obj.key,)))
        stack.callback(self._ingresses.listen(self._queue.add, lambda obj: (_Ref(resources.INGRESSES, obj.key),)))

    def _pod_changed(self, labels: _LabelSet) -> None:
        known = self._label_sets[labels.namespace]
        is_there = bool(self._pods.find(_BY_LABELS, labels))
        if is_there == (labels in known):
            return
        if is_there:
            known[labels] = dict(labels.labels)
        else:
            del known[labels]
        for service in self._services.find(clusters.BY_NAMESPACE, labels.namespace):
            self._queue.add(_Ref(resources.SERVICES, service.key))

    def _service_changed(self, name: NamespacedName) -> None:
        self._queue.add(_Ref(resources.SERVICES, name))
        for ingress in self._ingresses.find(clusters.BY_NAMESPACE, name.namespace):
            if name.name in reroute.backends(ingress):
                self._queue.add(_Ref(resources.INGRESSES, ingress.key))

    async def _reconcile(self, ref: _Ref) -> controller.Outcome:
        store: Store = self._services if ref.resource == resources.SERVICES else self._ingresses
        obj = store.get(ref.name)
        if obj is not None:
            await self._fields.patch(ref.resource, obj, self._patch(ref.resource, obj))
        return controller.Done()

    def _patch(self, resource: Resource, obj: Object) -> dict[str, Any]:
        if resource == resources.SERVICES:
            proxies = self._label_sets.get(obj.namespace, {}).values()
            return reroute.service_patch(obj, proxies, labels_global=self._labels_global)
        return reroute.ingress_patch(obj, lambda name: self._is_global(NamespacedName(obj.namespace, name)))

    def _is_global(self, name: NamespacedName) -> bool:
        service = self._services.get(name)
        return service is not None and reroute.is_global(service)
