"""The schedulers of a pool together: who is looked at after which change, and what must be known to begin."""

import asyncio
import logging
import random as randomness
from collections.abc import Callable

from hansa.control import controller, queue
from hansa.control.event_recorder import Recorder
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry
from hansa.runtime import clock, metrics, tasks
from hansa.scheduling.pooling import annotations
from hansa.scheduling.pooling.namespace_scheduler import NamespaceScheduler
from hansa.scheduling.pooling.pod_scheduler import Below, PodScheduler
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NAMESPACE, NamespaceRef, PodRef, Uppers
from hansa.scheduling.slicing.pool import State

log = logging.getLogger(__name__)
WORKERS = 64  # namespaces, and pods, that are written at once; also of one upper cluster
LOOK_AGAIN = 0.5  # seconds from one look at whether all is known to the next
PATIENCE = 30.0  # seconds after which the first plan is made although some have not been listed
PAUSE = 0.2  # seconds in which many changes of clusters wake those that wait once


class PoolScheduler:
    """Places the namespaces and pods of `uppers` in the clusters of `landscape`.

    `is_pool_known` says whether all clusters of the pool have joined: before, one that is missing may only be late.
    `are_uppers_known` says the same of the upper clusters.
    """

    def __init__(
        self,
        uppers: Registry,
        landscape: PoolClusters,
        *,
        settings: annotations.PoolSettings,
        below: Below,
        is_pool_known: Callable[[], bool],
        are_uppers_known: Callable[[], bool],
        recorder: Callable[[Cluster], Recorder],
        supervisor: tasks.Supervisor,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._landscape, self._clock = landscape, clock
        self._is_pool_known, self._are_uppers_known = is_pool_known, are_uppers_known
        self._ledger = Reservations()
        self._uppers = Uppers(uppers, self, recorder=recorder, supervisor=supervisor)
        self._namespaces = NamespaceScheduler(
            self._uppers, landscape, self._ledger, settings=settings, clock=clock, moved=self._moved
        )
        self._pods = PodScheduler(self._uppers, landscape, self._ledger, below=below, clock=clock)
        self._spaces: queue.Queue[NamespaceRef] = queue.Queue(
            "namespace-scheduler", clock=clock, random=random, metrics=metrics, group=_upper_of_space, width=WORKERS
        )
        self._spots: queue.Queue[PodRef] = queue.Queue(
            "pod-scheduler", clock=clock, random=random, metrics=metrics, group=_upper_of_spot, width=WORKERS
        )
        self._controllers = (
            controller.Controller(
                "namespace-scheduler", self._place_namespace, queue=self._spaces, metrics=metrics, workers=WORKERS
            ),
            controller.Controller(
                "pod-scheduler", self._place_pod, queue=self._spots, metrics=metrics, workers=WORKERS
            ),
        )
        self._states: dict[str, State | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._begun = asyncio.Event()

    async def run(self) -> None:
        """Schedule until drained. Begun again, it knows nothing and hears everybody anew."""
        self._begun.clear()
        self._ledger.clear()
        end = self._landscape.listen(self._land_changed)
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self._uppers.run()), group.create_task(self._begin())]
                async with asyncio.TaskGroup() as workers:
                    for one in self._controllers:
                        workers.create_task(one.run())
                for other in others:
                    other.cancel()
        finally:
            end()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    async def ready(self) -> None:
        """Wait until enough is known to schedule."""
        await self._begun.wait()

    def drain(self) -> None:
        """Begin nothing new."""
        for one in self._controllers:
            one.drain()

    def space_changed(self, space: NamespaceRef) -> None:
        """A namespace, or a quota in it, is another."""
        self._spaces.add(space)

    def pod_changed(self, spot: PodRef) -> None:
        """A pod is another, or gone."""
        upper = self._uppers.get(spot.upper)
        if self._ledger.observe(spot, None if upper is None else upper.pods.get(spot.key)):
            self._wake_waiting(spot.space)
        self._spots.add(spot)

    async def _place_namespace(self, space: NamespaceRef) -> controller.Outcome:
        return await self._namespaces.reconcile(space) if self._begun.is_set() else controller.After(LOOK_AGAIN)

    async def _place_pod(self, spot: PodRef) -> controller.Outcome:
        return await self._pods.reconcile(spot) if self._begun.is_set() else controller.After(LOOK_AGAIN)

    async def _begin(self) -> None:
        """Wait until enough is known: what others hold must be entered before anything is given away."""
        began = self._clock.now()
        while not self._is_enough_known(is_late=self._clock.now() - began >= PATIENCE):
            await self._clock.sleep(LOOK_AGAIN)
        self._namespaces.load()
        self._begun.set()
        log.info("scheduling begins", extra={"clusters": sorted(self._landscape.members())})

    def _is_enough_known(self, *, is_late: bool) -> bool:
        """Who is in the pool must be known. Those who don't answer are waited for a while only."""
        is_heard = self._landscape.is_known and self._are_uppers_known() and self._uppers.are_heard()
        return self._is_pool_known() and self._landscape.is_open and (is_late or is_heard)

    def _moved(self, space: NamespaceRef) -> None:
        """A namespace holds other slices: its pods are looked at, and others who wait."""
        upper = self._uppers.get(space.upper)
        for pod in upper.pods.find(NAMESPACE, space.name) if upper is not None else ():
            self._spots.add(PodRef(space.upper, pod.namespace, pod.name))
        self._wake_soon()

    def _wake_waiting(self, space: NamespaceRef) -> None:
        """Pods of a namespace use less than before."""
        if space in self._namespaces.uneasy:
            self._spaces.add(space)
        for spot in [spot for spot in self._pods.waiting if spot.space == space]:
            self._spots.add(spot)

    def _land_changed(self, name: str) -> None:
        land = self._landscape.land(name)
        state = None if land is None else land.state[0]
        if self._states.get(name) != state:
            self._states[name] = state
            log.info("a cluster of the pool is another", extra={"cluster": name, "is": state or "gone"})
            self._wake_all()
        else:
            self._wake_soon()

    def _wake_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._wake)

    def _wake(self) -> None:
        self._timer = None
        for space in self._namespaces.uneasy:
            self._spaces.add(space)
        for spot in self._pods.waiting | self._pods.moving:
            self._spots.add(spot)

    def _wake_all(self) -> None:
        for upper in self._uppers.all():
            for namespace in upper.namespaces:
                self._spaces.add(NamespaceRef(upper.name, namespace.name))
        self._wake_soon()


def _upper_of_space(space: NamespaceRef) -> str:
    return space.upper


def _upper_of_spot(spot: PodRef) -> str:
    return spot.upper
