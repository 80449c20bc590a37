"""Keeps EndpointSlices for the delegates of rerouted Services next to these, where clusters reach each other's pods.

They are computed by `model.translation.federation.endpoint_slices`. The engine copies them to the other targets, with
those that the cluster's own controller makes.
"""

import contextlib
import random as randomness
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from hansa.control import controller, queue
from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.engine.view import clusters
from hansa.federation import api
from hansa.federation.owned_objects import OwnedObjects
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.translation.common import services
from hansa.model.translation.federation import endpoint_slices, endpoints, reroute
from hansa.model.translation.federation.endpoints import PodNetwork
from hansa.runtime import clock, metrics

NAME: Final = "delegate-endpoints"
MANAGER: Final = "hansa-delegate-endpoints"
WORKERS: Final = 4
SYNC_DEADLINE: Final = 600.0  # seconds for the first lists
GATHERING: Final = 0.2  # seconds for which changes of pods are gathered into one write
SLICES: Final = Scope(resources.ENDPOINT_SLICES, labels=f"{keys.ENDPOINTS_OF},!{keys.UPPER}")
_BY_SERVICE: Final = "service"


class _Labeled(NamedTuple):
    """The labels of a pod in a namespace."""

    namespace: str
    labels: frozenset[tuple[str, str]]


class DelegateEndpoints:
    """Reconciles the slices of the Services of the `upper` cluster. Without networks, there are none."""

    def __init__(
        self,
        upper: Cluster,
        networks: Collection[PodNetwork],
        *,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._networks, self._recorder = upper, networks, recorder
        self._queue: queue.Queue[NamespacedName] = queue.Queue(NAME, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained, once all that is read has been listed."""
        async with contextlib.AsyncExitStack() as stack:
            pods = Scope(resources.PODS, fields=api.PROXY_PODS)
            targets = Scope(api.TARGETS), Scope(api.CLUSTER_TARGETS)
            scopes = (pods, Scope(resources.SERVICES), SLICES, *targets)
            stores = [await stack.enter_async_context(self._upper.informers.share(scope)) for scope in scopes]
            caches = [store.freshness for store in stores]
            if not await self._controller.synced(caches, within=SYNC_DEADLINE):
                return
            self._pods, self._services, self._slices, *self._targets = stores
            for store in (self._pods, self._services):
                store.index(clusters.BY_NAMESPACE, clusters.by_namespace)
            self._slices.index(_BY_SERVICE, endpoint_slices.owners)
            self._owned = OwnedObjects(
                self._upper.client,
                manager=MANAGER,
                is_ours=services.is_ours,
                stores={resources.ENDPOINT_SLICES: self._slices},
            )
            stack.callback(self._services.listen(self._queue.add, lambda service: (service.key,)))
            stack.callback(self._slices.listen(self._queue.add, endpoint_slices.owners))
            if self._networks:
                stack.callback(self._pods.listen(self._pod_changed, _labeled))
                for store in self._targets:
                    stack.callback(store.listen(self._target_changed, lambda target: (target.namespace,)))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def _pod_changed(self, pod: _Labeled) -> None:
        for service in self._rerouted(pod.namespace):
            if reroute.original_selector(service).items() <= pod.labels:
                self._queue.add_after(service.key, GATHERING)

    def _target_changed(self, namespace: str) -> None:
        for service in self._rerouted(namespace):
            self._queue.add(service.key)

    def _rerouted(self, namespace: str) -> Iterator[Object]:
        """The rerouted Services of a namespace, or of all."""
        found = self._services.find(clusters.BY_NAMESPACE, namespace) if namespace else list(self._services.values())
        return (one for one in found if keys.ORIGINAL_SELECTOR in one.annotations)

    async def _reconcile(self, name: NamespacedName) -> controller.Outcome:
        service = self._services.get(name)
        have = [one for one in self._slices.find(_BY_SERVICE, name) if services.is_ours(one)]
        wanted = [] if service is None or service.is_deleting else self._wanted(service, have)
        current = {one.name: one for one in have}
        for one in wanted:
            await self._owned.ensure(
                resources.ENDPOINT_SLICES, current.pop(one.name, None), one, endpoint_slices.patches
            )
        for one in current.values():
            await self._owned.delete(resources.ENDPOINT_SLICES, one)
        return controller.Done()

    def _wanted(self, service: Object, have: Iterable[Object]) -> list[Object]:
        if not self._networks or keys.ORIGINAL_SELECTOR not in service.annotations:
            return []
        own = self._own_nodes(service.namespace)
        proxies = (one for one in self._pods.find(clusters.BY_NAMESPACE, service.namespace))
        found = endpoints.of_service(service, proxies, self._networks, without=own)
        for address, pod in found.refused.items():
            message = f"pod {pod}: address {address} gets no EndpointSlice: not in its target's --pod-networks"
            self._recorder.record(
                InvolvedObject.of(service), "AddressNotAllowed", message, event_type=EventType.WARNING
            )
        return list(endpoint_slices.slices(service, found, have))

    def _own_nodes(self, namespace: str) -> set[str]:
        """The virtual nodes of this cluster itself: its own controller makes slices for delegates there."""
        own: set[str] = set()
        for obj in (one for store in self._targets for one in store.values() if one.namespace in ("", namespace)):
            with contextlib.suppress(api.BadObject):
                if (target := api.target(obj)).is_self:
                    own.add(target.node)
        return own


def _labeled(pod: Object) -> tuple[_Labeled]:
    return (_Labeled(pod.namespace, frozenset(pod.labels.items())),)
