"""The controller of virtual nodes of one upper cluster: creates them, renews their Leases, and writes their status.

When the process ends, its nodes are kept: their pods continue to run, and a restart within the Lease has no effect.
"""

import logging
import random as randomness
from collections.abc import Callable

from hansa.control import controller, informer, queue, store
from hansa.kube import errors as api_errors
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.nodes import manifest, virtual_node
from hansa.nodes.heartbeat import Heartbeat, Timing
from hansa.nodes.lower_monitor import Lower, LowerMonitor, Monitor
from hansa.nodes.settings import NodeSettings
from hansa.nodes.virtual_node import NotOurs, VirtualNode
from hansa.runtime import backoff, clock, errors, metrics

log = logging.getLogger(__name__)
SCOPE = informer.Scope(resources.NODES, labels=manifest.SELECTOR)
RETRIES = backoff.Backoff(first=0.1, factor=2.0, most=5.0, jitter=0.2)  # several retries within a Lease
WORKERS = 8
DEADLINE = 15.0  # seconds for all writes of one sync


class VirtualNodes:
    """The virtual nodes of one upper cluster that this process serves; `upper_id` is the one in the stamp of copies."""

    def __init__(
        self,
        upper_id: str,
        client: Client,
        *,
        informers: informer.Informers,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        timing: Timing | None = None,
    ) -> None:
        self._upper_id, self._client, self._informers = upper_id, client, informers
        self._clock, self._random, self._timing = clock, random, timing or Timing()
        self._nodes: dict[str, VirtualNode] = {}
        self._refusals: dict[str, str] = {}
        self._store: store.Store | None = None
        name = "virtual-nodes"
        self._queue: queue.Queue[str] = queue.Queue(name, clock=clock, random=random, metrics=metrics, retries=RETRIES)
        self._controller = controller.Controller(
            name, self._reconcile, queue=self._queue, metrics=metrics, workers=WORKERS, deadline=DEADLINE
        )
        self._writes = metrics.counter(
            "hansa_virtual_node_writes_total", "Writes of virtual nodes.", labels=["cluster", "object"]
        )

    def add(self, settings: NodeSettings, lower: Lower) -> None:
        """Start to serve the virtual node of a lower cluster whose nodes and pods are watched."""

        def watch(changed: Callable[[], None]) -> Monitor:
            patience = self._timing.first_sync
            return LowerMonitor(
                settings, lower, upper_id=self._upper_id, changed=changed, clock=self._clock, patience=patience
            )

        self.add_monitored(settings.name, watch)

    def add_monitored(self, name: str, watch: Callable[[Callable[[], None]], Monitor]) -> None:
        """Start to serve a virtual node. `watch` makes its monitor, which calls its argument when its state changes."""
        if name in self._nodes:
            raise errors.HansaError(f"duplicate virtual node {name}: use another name for one of them")
        heartbeat = Heartbeat(self._timing, self._random)
        # Debounced: one timer for all changes until the next status may be written.
        monitor = watch(lambda: self._queue.add_after(name, heartbeat.until_status_allowed(self._clock.now())))
        self._nodes[name] = VirtualNode(
            monitor, self._client, heartbeat=heartbeat, timing=self._timing, clock=self._clock, writes=self._writes
        )
        self._queue.add(name)

    async def forget(self, name: str) -> None:
        """Stop to serve a node, without deleting it."""
        self._refusals.pop(name, None)
        await self._nodes.pop(name).close()

    async def remove(self, name: str) -> None:
        """Stop to serve a node, and delete it with its Lease."""
        settings = self._nodes[name].settings
        await self.forget(name)
        await virtual_node.remove(self._client, settings)

    async def run(self) -> None:
        """Run until drained."""
        async with self._informers.share(SCOPE) as self._store:
            ends = (
                self._store.listen(self._queue.add, lambda node: [node.name]),
                self._store.freshness.listen(lambda _: self._wake_all()),
            )
            try:
                self._wake_all()
                await self._controller.run()
            finally:
                for end in ends:
                    end()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def refusals(self) -> list[str]:
        """Why nodes can't be served, one message each."""
        return list(self._refusals.values())

    def _wake_all(self) -> None:
        for name in self._nodes:
            self._queue.add(name)

    async def _reconcile(self, name: str) -> controller.Outcome:
        node = self._nodes.get(name)
        if node is None or self._store is None:
            return controller.Done()
        try:
            wait = await node.sync(self._store)
        except (NotOurs, api_errors.Forbidden, api_errors.Invalid) as error:
            # An administrator has to act. It is retried: a starting API server refuses requests that it allows later.
            if self._refusals.get(name) != str(error):
                log.error("virtual node refused", extra={"node": name, "error": str(error)})
            self._refusals[name] = str(error)
            return controller.After(self._timing.renew)
        self._refusals.pop(name, None)
        return controller.After(wait)
