"""Keeps the virtual nodes of one upper cluster as they should be: made when missing, alive, telling the facts.

A process that ends leaves its nodes as they are: their pods go on below, and a restart within the lease is not felt.
"""

import logging
import random as randomness

from hansa.control import controller, informer, queue, store
from hansa.kube import errors as api_errors
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.nodes import manifest, virtual_node
from hansa.nodes.heartbeat import Heartbeat, Timing
from hansa.nodes.lower_monitor import Lower, LowerMonitor
from hansa.nodes.settings import NodeSettings
from hansa.nodes.virtual_node import NotOurs, VirtualNode
from hansa.runtime import backoff, clock, errors, metrics

log = logging.getLogger(__name__)
SCOPE = informer.Scope(resources.NODES, labels=manifest.SELECTOR)
RETRIES = backoff.Backoff(first=0.1, factor=2.0, most=5.0, jitter=0.2)  # so that several tries fit into a lease
WORKERS = 8
DEADLINE = 15.0  # seconds for all writes of one turn


class VirtualNodes:
    """All virtual nodes of one upper cluster that this process serves; `upper_id` is in the mark of its copies."""

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
        """Serve a virtual node from now on."""
        name = settings.name
        if name in self._nodes:
            raise errors.HansaError(f"virtual node {name} is there twice: give one of them another name")
        pace = Heartbeat(self._timing, self._random)
        follower = LowerMonitor(
            settings,
            lower,
            upper_id=self._upper_id,
            # Under churn one timer stands for all changes until the next status may be written.
            changed=lambda: self._queue.add_after(name, pace.rest(self._clock.now())),
            clock=self._clock,
            patience=self._timing.first_facts,
        )
        self._nodes[name] = VirtualNode(
            follower, self._client, pace=pace, timing=self._timing, clock=self._clock, writes=self._writes
        )
        self._queue.add(name)

    async def forget(self, name: str) -> None:
        """Serve a node no longer, and leave it to whoever serves it next."""
        self._refusals.pop(name, None)
        await self._nodes.pop(name).end()

    async def remove(self, name: str) -> None:
        """Serve a node no longer, and delete it with its lease."""
        settings = self._nodes[name].settings
        await self.forget(name)
        await virtual_node.remove(self._client, settings)

    async def run(self) -> None:
        """Work until drained."""
        async with self._informers.share(SCOPE) as self._store:
            ends = (
                self._store.listen(self._queue.add, lambda node: [node.name]),
                self._store.knowledge.listen(lambda _: self._wake_all()),
            )
            try:
                self._wake_all()
                await self._controller.run()
            finally:
                for end in ends:
                    end()

    def drain(self) -> None:
        """Finish what is in hand, then let `run` return."""
        self._controller.drain()

    def troubles(self) -> list[str]:
        """Which nodes cannot be served and why, a sentence each."""
        return list(self._refusals.values())

    def _wake_all(self) -> None:
        for name in self._nodes:
            self._queue.add(name)

    async def _reconcile(self, name: str) -> controller.Outcome:
        node = self._nodes.get(name)
        if node is None or self._store is None:
            return controller.Done()
        try:
            wait = await node.turn(self._store)
        except (NotOurs, api_errors.Forbidden, api_errors.Invalid) as error:
            # Somebody has to do something about it; and a server that starts refuses what it will allow in a moment.
            if self._refusals.get(name) != str(error):
                log.error("a virtual node is refused", extra={"error": str(error)})
            self._refusals[name] = str(error)
            return controller.After(self._timing.renew)
        self._refusals.pop(name, None)
        return controller.After(wait)
