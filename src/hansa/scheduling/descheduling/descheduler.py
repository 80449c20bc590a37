"""The descheduler of an upper cluster: watches pods, and evicts those that their lower cluster cannot schedule.

First the virtual node is annotated with the owner, so that the webhook keeps its next pod off the node; then the pod is
evicted. A crash between the two loses nothing: the pod is still refused, and is evicted by the next process.
"""

import asyncio
import contextlib
import logging
import random as randomness
from typing import Final

from hansa.control import controller, queue, table
from hansa.control.event_recorder import InvolvedObject, Recorder
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, refused_owners
from hansa.runtime import clock, metrics
from hansa.scheduling.descheduling import choosing
from hansa.scheduling.descheduling.choosing import Later, Move
from hansa.scheduling.descheduling.limits import Round
from hansa.scheduling.descheduling.policy import Policy

log = logging.getLogger(__name__)
NAME: Final = "descheduler"
NODES: Final = Scope(resources.NODES, labels=f"{keys.VIRTUAL_NODE}=true")
BUDGET_SECONDS: Final = 10.0  # until the next try of an eviction that a PodDisruptionBudget does not allow
LIST_SECONDS: Final = 60.0


class Descheduler:
    """Evicts pods of the `upper` cluster while it runs; with `is_dry`, it only logs which ones it would evict."""

    def __init__(
        self,
        upper: Cluster,
        policy: Policy,
        *,
        round_seconds: float,
        is_dry: bool,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._upper, self._policy, self._is_dry, self._recorder, self._clock = upper, policy, is_dry, recorder, clock
        self._round = Round(policy, round_seconds)
        self._freezing = asyncio.Lock()
        self._evicted = metrics.counter("hansa_descheduled_pods_total", "Pods evicted by the descheduler.")
        self._queue: queue.Queue[NamespacedName] = queue.Queue(
            NAME, clock=clock, random=random, metrics=metrics, group=lambda key: key.namespace
        )
        self._controller = controller.Controller(NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=8)

    async def run(self) -> None:
        """Watch and evict until drained."""
        informers = self._upper.informers
        async with contextlib.AsyncExitStack() as stack:
            self._pods = await stack.enter_async_context(informers.share(Scope(resources.PODS)))
            self._nodes = await stack.enter_async_context(informers.share(NODES))
            caches = (store.freshness for store in (self._pods, self._nodes))
            if not await self._controller.synced(caches, within=LIST_SECONDS):
                return
            stack.callback(self._pods.listen(self._queue.add, table.own_key))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the evictions in progress, then let `run` return."""
        self._controller.drain()

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        pod = self._pods.get(key)
        if pod is None or not self._nodes.freshness.is_known:
            return controller.Done()
        decision = choosing.decide(pod, self._policy, self._node, self._clock.wall())
        if isinstance(decision, Later):
            return controller.After(max(1.0, decision.seconds))
        if not isinstance(decision, Move):
            return controller.Done()
        if (wait := self._round.wait(decision, self._clock.now())) > 0:
            return controller.After(wait)
        return await self._move(decision)

    async def _move(self, move: Move) -> controller.Outcome:
        log.info(
            "pod would be evicted" if self._is_dry else "evicting pod",
            extra={"pod": str(move.pod.key), "reason": move.reason},
        )
        self._round.count(move, self._clock.now())
        if self._is_dry:
            return controller.Done()
        try:
            await self._freeze(move)
            await self._evict(move.pod)
        except errors.ApiError as error:
            self._round.give_back(move)
            return _after(error)
        self._evicted.inc()
        after = (
            f"; new pods of its owner avoid the node for {self._policy.freeze_seconds:g} s" if move.refused_by else ""
        )
        self._recorder.record(InvolvedObject.of(move.pod), "Descheduled", f"{move.reason}{after}")
        return controller.Done()

    async def _freeze(self, move: Move) -> None:
        """Annotate the node with the owner; one at a time, since each annotation has all owners."""
        async with self._freezing:
            node = self._node(move.refused_by)
            if node is None or move.owner in refused_owners.of(node, self._clock.wall()):
                return
            text = refused_owners.with_owner(
                node, move.owner, now=self._clock.wall(), seconds=self._policy.freeze_seconds
            )
            patch = {
                "metadata": {
                    "annotations": {keys.REFUSED_OWNERS: text},
                    "resourceVersion": node.version,  # another process may have added one
                }
            }
            self._nodes.observe(await self._upper.client.patch(resources.NODES, node.name, patch))

    async def _evict(self, pod: Object) -> None:
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        await self._upper.client.call(
            resources.PODS, pod.name, "eviction", body=Object.of(eviction), namespace=pod.namespace
        )

    def _node(self, name: str) -> Object | None:
        return self._nodes.get(NamespacedName("", name))


def _after(error: errors.ApiError) -> controller.Outcome:
    """When to try again after an error; other errors are retried with back-off."""
    match error:
        case errors.Throttled():
            return controller.After(max(BUDGET_SECONDS, error.retry_after))
        case errors.NotFound() | errors.Conflict():  # the pod is gone or another one, or the node has changed
            return controller.After(1.0)
    raise error
