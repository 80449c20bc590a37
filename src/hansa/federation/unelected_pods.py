"""Pods on virtual nodes that are not proxy pods, such as those from before the agent: nothing starts or ends them.

An Event says so, and a deletion is completed, as a kubelet would. They are not deleted: that is for their users.
"""

import contextlib
import random as randomness
from collections.abc import Iterable
from typing import Final

from hansa.control import controller, queue
from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.federation.api import OTHER_PODS, PROXY_PODS
from hansa.federation.binder import NODES
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, placement
from hansa.runtime import clock, metrics

NAME: Final = "unelected-pods"
WORKERS: Final = 2
SYNC_DEADLINE: Final = 600.0  # seconds for the first lists


class UnelectedPods:
    """Reconciles the pods on virtual nodes of the `upper` cluster that are not proxy pods."""

    def __init__(
        self,
        upper: Cluster,
        *,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._recorder = upper, recorder
        self._queue: queue.Queue[NamespacedName] = queue.Queue(NAME, clock=clock, random=random, metrics=metrics)
        self._controller = controller.Controller(
            NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )

    async def run(self) -> None:
        """Reconcile until drained."""
        async with contextlib.AsyncExitStack() as stack:
            self._nodes = await stack.enter_async_context(self._upper.informers.share(NODES))
            scopes = (Scope(resources.PODS, fields=fields) for fields in (OTHER_PODS, PROXY_PODS))
            stores = [await stack.enter_async_context(self._upper.informers.share(scope)) for scope in scopes]
            caches = [store.freshness for store in (self._nodes, *stores)]
            if not await self._controller.synced(caches, within=SYNC_DEADLINE):
                return
            self._others, self._proxies = stores
            stack.callback(self._others.listen(self._queue.add, self._on_node))
            stack.callback(self._proxies.listen(self._queue.add, self._on_node_of_others))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def _on_node(self, pod: Object) -> Iterable[NamespacedName]:
        return () if self._node_of(pod) is None else (pod.key,)

    def _on_node_of_others(self, pod: Object) -> Iterable[NamespacedName]:
        """A proxy pod on a node that does not take it: a user may bind any pod to any node."""
        node = self._node_of(pod)
        is_taken = node is None or node.labels.get(keys.TARGET_NAMESPACE) in (None, pod.namespace)
        return () if is_taken else (pod.key,)

    def _node_of(self, pod: Object) -> Object | None:
        name = placement.node_of(pod)
        return self._nodes.get(NamespacedName("", name)) if name else None

    def _misplaced(self, key: NamespacedName) -> Object | None:
        other, proxy = self._others.get(key), self._proxies.get(key)
        if other is not None and self._on_node(other):
            return other
        return proxy if proxy is not None and self._on_node_of_others(proxy) else None

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        if (pod := self._misplaced(key)) is None:
            return controller.Done()
        if not pod.is_deleting:
            node = placement.node_of(pod)
            message = f"node {node} represents another cluster, which only runs elected pods of its Target's namespace"
            self._recorder.record(InvolvedObject.of(pod), "NotElected", message, event_type=EventType.WARNING)
        elif pod.metadata.deletion_grace_period_seconds:  # with none, it waits for finalizers
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                await self._upper.client.delete(resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=0)
        return controller.Done()
