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
from hansa.federation.api import OTHER_PODS
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
            self._pods = await stack.enter_async_context(
                self._upper.informers.share(Scope(resources.PODS, fields=OTHER_PODS))
            )
            for store in (self._nodes, self._pods):
                await store.freshness.wait_synced(SYNC_DEADLINE)
            stack.callback(self._pods.listen(self._queue.add, self._misplaced))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def _misplaced(self, pod: Object) -> Iterable[NamespacedName]:
        node = placement.node_of(pod)
        return (pod.key,) if node and self._nodes.get(NamespacedName("", node)) is not None else ()

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        pod = self._pods.get(key)
        if pod is None or not self._misplaced(pod):
            return controller.Done()
        if not pod.is_deleting:
            node = placement.node_of(pod)
            message = f"node {node} represents another cluster, where only pods with the annotation {keys.ELECT} run"
            self._recorder.record(InvolvedObject.of(pod), "NotElected", message, event_type=EventType.WARNING)
        elif pod.metadata.deletion_grace_period_seconds:  # with none, it waits for finalizers
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                await self._upper.client.delete(resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=0)
        return controller.Done()
