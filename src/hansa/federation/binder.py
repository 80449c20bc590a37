"""The binder: follows proxy pods, virtual nodes and views of targets, and reconciles the pods that they concern.

The choice of targets is in `federation.binding`; delegates, and the binding of pods to virtual nodes, are the engine's.
"""

import asyncio
import contextlib
import logging
import random as randomness
from collections.abc import Iterable
from typing import Final

from hansa.control import controller, queue, table
from hansa.control.event_recorder import Recorder
from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.federation import api
from hansa.federation.binding.nodes import VirtualNodes
from hansa.federation.binding.reconciler import Reconciler
from hansa.federation.binding.reserved_views import ReservedViews
from hansa.federation.target_views import TargetViews
from hansa.kube import objects, resources
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from hansa.runtime import clock, metrics

log = logging.getLogger(__name__)
NAME: Final = "binder"
# As in the mode's rules, so that the caches are shared.
PROXIES: Final = Scope(resources.PODS, fields=api.PROXY_PODS)
NODES: Final = Scope(resources.NODES, labels=f"{keys.PROVIDER_TAINT}=admiralty")
WORKERS: Final = 64
WAKE_DELAY: Final = 0.2  # seconds; changes within it requeue pending pods once
SYNC_DEADLINE: Final = 600.0  # seconds for the first lists of the source; it is retried after


class Binder:
    """Chooses a target for every proxy pod of the `upper` cluster while it runs."""

    def __init__(
        self,
        views: TargetViews,
        upper: Cluster,
        *,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._views, self._upper, self._recorder = views, upper, recorder
        self._clock, self._random = clock, random
        self._queue: queue.Queue[NamespacedName] = queue.Queue(
            NAME, clock=clock, random=random, metrics=metrics, group=lambda key: key.namespace, width=WORKERS
        )
        self._controller = controller.Controller(
            NAME, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS
        )
        self._timer: asyncio.TimerHandle | None = None
        self._started = asyncio.Event()

    async def run(self) -> None:
        """Place pods until drained. Each run starts without state."""
        self._started.clear()
        async with contextlib.AsyncExitStack() as stack:
            pods = await stack.enter_async_context(self._upper.informers.share(PROXIES))
            nodes = await stack.enter_async_context(self._upper.informers.share(NODES))
            if not await self._controller.synced((pods.freshness, nodes.freshness), within=SYNC_DEADLINE):
                return
            stack.callback(self._cancel_timer)
            self._start(stack, pods, nodes)
            await self._controller.run()

    async def ready(self) -> None:
        """Wait until the first run places pods."""
        await self._started.wait()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def _start(self, stack: contextlib.AsyncExitStack, pods: Store, nodes: Store) -> None:
        self._targets, self._nodes, self._node_store = ReservedViews(), VirtualNodes(), nodes
        self._reconciler = Reconciler(
            pods,
            self._upper.client,
            self._targets,
            self._nodes,
            recorder=self._recorder,
            clock=self._clock,
            random=self._random,
        )
        stack.callback(nodes.listen(self._node_changed, lambda node: (node.name,)))
        stack.callback(self._views.listen(self._view_changed))
        for node in self._views:
            self._view_changed(node)
        self._reconciler.load()
        stack.callback(pods.listen(self._queue.add, table.own_key))
        self._started.set()
        log.info("binder started", extra={"targets": len(self._views)})

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        outcome = await self._reconciler.reconcile(key)
        if self._reconciler.pending:
            self._wake_at(self._targets.next_end)
        return outcome

    def _view_changed(self, node: str) -> None:
        view = self._views.get(node)
        if view is None:
            self._targets.remove(node)
        else:
            self._targets.update(view, self._clock.now())
        if view is None or not view.is_usable:
            self._add_all(self._targets.held_in(node))  # they may have to move
        self._wake_soon()

    def _node_changed(self, name: str) -> None:
        if self._nodes.update(name, self._node_store.get(objects.NamespacedName("", name))):
            self._wake_soon()

    def _wake_at(self, moment: float) -> None:
        """Reconcile the pending pods when the next reservation ends."""
        if self._timer is None and moment != float("inf"):
            self._set_timer(max(WAKE_DELAY, moment - self._clock.now()))

    def _wake_soon(self) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or self._timer.when() > loop.time() + WAKE_DELAY:
            self._set_timer(WAKE_DELAY)

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def _wake(self) -> None:
        self._timer = None
        self._reconciler.capacity_changed()
        self._add_all(self._reconciler.pending)

    def _add_all(self, pods: Iterable[NamespacedName]) -> None:
        for key in tuple(pods):
            self._queue.add(key)
