"""Writes a condition on a tenant's Services about which endpoints they reach, if the tenant has a pool.

vc-syncer runs it for each tenant. The condition is computed by `model.translation.tenant.service_reach`.
"""

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
from hansa.runtime import clock, metrics, timestamps

MANAGER: Final = "hansa-vc-pool"
DEBOUNCE_SECONDS: Final = 1.0  # changes of pods within this time cause one reconcile
WORKERS: Final = 4
KINDS: Final = (resources.NAMESPACES, resources.SERVICES, resources.PODS)


class ServiceReach:
    """Reconciles the condition of all Services of one tenant, by namespace."""

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
        """Reconcile until cancelled."""
        async with contextlib.AsyncExitStack() as stack:
            caches = [await stack.enter_async_context(self._tenant.informers.share(Scope(kind))) for kind in KINDS]
            self._namespaces, self._services, self._pods = caches
            for cache in (self._services, self._pods):
                cache.index(clusters.BY_NAMESPACE, clusters.by_namespace)
                stack.callback(cache.listen(self._enqueue, clusters.by_namespace))
            stack.callback(self._namespaces.listen(self._enqueue, lambda obj: (obj.name,)))
            for cache in caches:
                stack.callback(cache.freshness.listen(lambda _: self._enqueue_all()))
            await self._controller.run()

    def _enqueue(self, namespace: str) -> None:
        self._queue.add_after(namespace, DEBOUNCE_SECONDS)

    def _enqueue_all(self) -> None:
        for key in self._namespaces:
            self._enqueue(key.name)

    async def _reconcile(self, name: str) -> controller.Outcome:
        namespace = self._namespaces.get(NamespacedName("", name))
        is_known = all(cache.freshness.is_known for cache in (self._namespaces, self._services, self._pods))
        if namespace is None or namespace.is_deleting or not is_known:
            return controller.Done()
        placed = pooled.placements(namespace)
        if isinstance(placed, Unknown):
            return controller.Done()
        pods = list(self._pods.find(clusters.BY_NAMESPACE, name))
        for service in list(self._services.find(clusters.BY_NAMESPACE, name)):
            found = service_reach.of(service, pods, placed, are_networks_joined=self._are_networks_joined)
            # Services of namespaces that were never placed, as kube-system, get no condition.
            if found is not None and (placed or _condition(service)):
                await self._write(service, found)
        return controller.Done()

    async def _write(self, service: Object, found: service_reach.Reach) -> None:
        before, status = _condition(service), "True" if found.is_whole else "False"
        content = {"status": status, "reason": found.reason, "message": found.message}
        if {name: before.get(name) for name in content} == content:
            return
        now = timestamps.time(self._clock.wall())
        since = before["lastTransitionTime"] if before.get("status") == status else now
        condition = {"type": service_reach.CONDITION, **content, "lastTransitionTime": since}
        applied = Object.of(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"namespace": service.namespace, "name": service.name, "uid": service.uid},
                "status": {"conditions": [condition]},
            }
        )
        with contextlib.suppress(errors.NotFound, errors.Conflict):  # deleted or recreated
            self._services.observe(
                await self._tenant.client.apply(
                    resources.SERVICES, applied, field_manager=MANAGER, subresource="status", force=True
                )
            )


def _condition(service: Object) -> dict[str, Any]:
    conditions = service.status.get("conditions") or ()
    return next((dict(one) for one in conditions if one["type"] == service_reach.CONDITION), {})
