"""Tells on a tenant's Services whom they reach, where the tenant has a pool of super clusters: by a condition."""

import contextlib
import random as randomness
from typing import Any, Final

from hansa.control import controller, queue
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.engine.view import clusters
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model.pair import Unknown
from hansa.model.translation.tenant import pooled, service_reach
from hansa.runtime import clock, metrics

MANAGER: Final = "hansa-vc-pool"
PAUSE: Final = 1.0  # seconds in which many changes of pods are one
WORKERS: Final = 4
KINDS: Final = (resources.NAMESPACES, resources.SERVICES, resources.PODS)


class ServiceReach:
    """Follows the Services and pods of one tenant."""

    def __init__(
        self,
        tenant: Cluster,
        *,
        are_networks_joined: bool,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._tenant, self._are_networks_joined, self._clock = tenant, are_networks_joined, clock
        self._queue: queue.Queue[str] = queue.Queue("service-reach", clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            "service-reach", self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Tell until cancelled."""
        async with contextlib.AsyncExitStack() as stack:
            caches = [await stack.enter_async_context(self._tenant.informers.share(Scope(kind))) for kind in KINDS]
            self._namespaces, self._services, self._pods = caches
            for cache in (self._services, self._pods):
                cache.index(clusters.BY_NAMESPACE, clusters.by_namespace)
                stack.callback(cache.listen(self._look, clusters.by_namespace))
            stack.callback(self._namespaces.listen(self._look, lambda obj: (obj.name,)))
            for cache in caches:
                stack.callback(cache.knowledge.listen(lambda _: self._look_at_all()))
            await self._controller.run()

    def _look(self, namespace: str) -> None:
        self._queue.add_after(namespace, PAUSE)

    def _look_at_all(self) -> None:
        for place in self._namespaces:
            self._look(place.name)

    async def _reconcile(self, name: str) -> controller.Outcome:
        namespace = self._namespaces.get(NamespacedName("", name))
        is_known = all(cache.knowledge.is_known for cache in (self._namespaces, self._services, self._pods))
        if namespace is None or namespace.is_leaving or not is_known:
            return controller.Done()
        placed = pooled.placements(namespace)
        if isinstance(placed, Unknown):
            return controller.Done()
        pods = list(self._pods.find(clusters.BY_NAMESPACE, name))
        for service in list(self._services.find(clusters.BY_NAMESPACE, name)):
            found = service_reach.of(service, pods, placed, are_networks_joined=self._are_networks_joined)
            # Where nothing is placed and nothing was told, as in the system's namespaces, there is nothing to tell.
            if found is not None and (placed or _condition(service)):
                await self._tell(service, found)
        return controller.Done()

    async def _tell(self, service: Object, found: service_reach.Reach) -> None:
        before, status = _condition(service), "True" if found.is_whole else "False"
        words = {"status": status, "reason": found.reason, "message": found.message}
        if {name: before.get(name) for name in words} == words:
            return
        now = self._clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
        since = before["lastTransitionTime"] if before.get("status") == status else now
        condition = {"type": service_reach.CONDITION, **words, "lastTransitionTime": since}
        applied = Object.of(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"namespace": service.namespace, "name": service.name, "uid": service.uid},
                "status": {"conditions": [condition]},
            }
        )
        with contextlib.suppress(errors.NotFound, errors.Conflict):  # it is gone, or another one by now
            self._services.observe(
                await self._tenant.client.apply(
                    resources.SERVICES, applied, field_manager=MANAGER, subresource="status", force=True
                )
            )


def _condition(service: Object) -> dict[str, Any]:
    conditions = service.status.get("conditions") or ()
    return next((dict(one) for one in conditions if one["type"] == service_reach.CONDITION), {})
