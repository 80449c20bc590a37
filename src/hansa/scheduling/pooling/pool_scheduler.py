"""The namespace and pod schedulers of a pool: their queues, which events requeue which keys, and when they start."""

import asyncio
import contextlib
import logging
import random as randomness
from collections.abc import Callable

from hansa.control import controller, queue
from hansa.control.event_recorder import Recorder
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.runtime import clock, metrics, tasks
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling.namespace_scheduler import NamespaceScheduler
from hansa.scheduling.pooling.pod_scheduler import Below, PodScheduler
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.records import Records
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NAMESPACE, NamespaceRef, PodRef, Uppers
from hansa.scheduling.slicing import annotations
from hansa.scheduling.slicing.pool import State

log = logging.getLogger(__name__)
WORKERS = 64  # concurrent reconciles of namespaces, and of pods; also of one upper cluster
START_POLL = 0.5  # seconds between checks whether scheduling can start
START_TIMEOUT = 30.0  # seconds; then scheduling starts without clusters that have not synced
WAKE_DELAY = 0.2  # seconds; changes of clusters within it requeue pending keys once


class PoolScheduler:
    """Places the namespaces and pods of `uppers` in `clusters`. Pods of `unsliced` namespaces need no slices.

    `is_pool_known` is whether all clusters of the pool have joined, `are_uppers_known` whether all upper clusters have.
    """

    def __init__(
        self,
        uppers: ClusterRegistry,
        clusters: PoolClusters,
        *,
        settings: annotations.PoolSettings,
        records: Records,
        below: Below,
        unsliced: frozenset[str] = frozenset(),
        is_pool_known: Callable[[], bool],
        are_uppers_known: Callable[[], bool],
        recorder: Callable[[Cluster], Recorder],
        supervisor: tasks.Supervisor,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._clusters, self._clock, self._records = clusters, clock, records
        self._is_pool_known, self._are_uppers_known = is_pool_known, are_uppers_known
        self._reservations = Reservations()
        self._uppers = Uppers(uppers, self, recorder=recorder, supervisor=supervisor)
        self._namespaces = NamespaceScheduler(
            self._uppers,
            clusters,
            self._reservations,
            settings=settings,
            records=records,
            clock=clock,
            holding_changed=self._holding_changed,
        )
        self._pods = PodScheduler(
            self._uppers, clusters, self._reservations, below=below, unsliced=unsliced, clock=clock
        )
        self._namespace_queue: queue.Queue[NamespaceRef] = queue.Queue(
            "namespace-scheduler", clock=clock, random=random, metrics=metrics, group=_upper_of_namespace, width=WORKERS
        )
        self._pod_queue: queue.Queue[PodRef] = queue.Queue(
            "pod-scheduler", clock=clock, random=random, metrics=metrics, group=_upper_of_pod, width=WORKERS
        )
        self._controllers = (
            controller.Controller(
                "namespace-scheduler",
                self._place_namespace,
                queue=self._namespace_queue,
                metrics=metrics,
                workers=WORKERS,
            ),
            controller.Controller(
                "pod-scheduler", self._place_pod, queue=self._pod_queue, metrics=metrics, workers=WORKERS
            ),
        )
        self._states: dict[str, State] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._started = asyncio.Event()

    async def run(self) -> None:
        """Schedule until drained. Each run starts without state and reads all annotations."""
        self._started.clear()
        self._reservations.clear()
        end = self._clusters.listen(self._cluster_changed)
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self._uppers.run()), group.create_task(self._start())]
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
        """Wait until scheduling has started."""
        await self._started.wait()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        for one in self._controllers:
            one.drain()

    def namespace_changed(self, namespace_ref: NamespaceRef) -> None:
        """Requeue a namespace: it or one of its quotas changed."""
        self._namespace_queue.add(namespace_ref)

    def pod_changed(self, pod_ref: PodRef) -> None:
        """Requeue a pod: it changed or was deleted."""
        upper = self._uppers.get(pod_ref.upper)
        with contextlib.suppress(HansaError):  # requests that cannot be read: its reconcile reports them
            if self._reservations.observe(pod_ref, None if upper is None else upper.pods.get(pod_ref.key)):
                self._wake_pending(pod_ref.namespace_ref)
        self._pod_queue.add(pod_ref)

    async def _place_namespace(self, namespace_ref: NamespaceRef) -> controller.Outcome:
        return (
            await self._namespaces.reconcile(namespace_ref) if self._started.is_set() else controller.After(START_POLL)
        )

    async def _place_pod(self, pod_ref: PodRef) -> controller.Outcome:
        return await self._pods.reconcile(pod_ref) if self._started.is_set() else controller.After(START_POLL)

    async def _start(self) -> None:
        """Wait until caches are synced: existing slices must be recorded before the first plan."""
        started_at = self._clock.now()
        while not self._can_start(is_late=self._clock.now() - started_at >= START_TIMEOUT):
            await self._clock.sleep(START_POLL)
        self._namespaces.load()
        for upper in self._uppers.all():  # namespaces that are gone since are only in their records
            for name in self._records.names(upper.name):
                self.namespace_changed(NamespaceRef(upper.name, name))
        self._started.set()
        log.info("scheduling started", extra={"clusters": ",".join(sorted(self._clusters.members()))})

    def _can_start(self, *, is_late: bool) -> bool:
        """The members of the pool must be known. Clusters that have not synced are awaited until it is late."""
        have_synced = self._clusters.is_known and self._are_uppers_known() and self._uppers.have_synced()
        return self._is_pool_known() and self._clusters.is_open and (is_late or have_synced)

    def _holding_changed(self, namespace_ref: NamespaceRef) -> None:
        """Requeue the pods of a namespace whose slices changed, and all pending keys."""
        upper = self._uppers.get(namespace_ref.upper)
        if upper is not None:
            own = upper.pods.find(NAMESPACE, namespace_ref.name)
            refs = (PodRef(namespace_ref.upper, pod.namespace, pod.name) for pod in own)
            for pod_ref in (*refs, *self._pods.unsliced_pods(upper)):
                self._pod_queue.add(pod_ref)
        self._wake_soon()

    def _wake_pending(self, namespace_ref: NamespaceRef) -> None:
        """Requeue the pending pods of a namespace whose pods use less than before."""
        if namespace_ref in self._namespaces.incomplete:
            self._namespace_queue.add(namespace_ref)
        for pod_ref in [pod_ref for pod_ref in self._pods.pending if pod_ref.namespace_ref == namespace_ref]:
            self._pod_queue.add(pod_ref)

    def _cluster_changed(self, name: str) -> None:
        state = self._clusters.state(name)
        if self._states.get(name) != state:
            self._states[name] = state
            log.info("pool cluster changed", extra={"cluster": name, "state": state})
            self._wake_all()
        else:
            self._wake_soon()

    def _wake_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAKE_DELAY, self._wake)

    def _wake(self) -> None:
        self._timer = None
        for namespace_ref in self._namespaces.incomplete:
            self._namespace_queue.add(namespace_ref)
        for pod_ref in self._pods.pending | self._pods.moving:
            self._pod_queue.add(pod_ref)

    def _wake_all(self) -> None:
        for upper in self._uppers.all():
            for namespace in upper.namespaces:
                self._namespace_queue.add(NamespaceRef(upper.name, namespace.name))
        self._wake_soon()


def _upper_of_namespace(namespace_ref: NamespaceRef) -> str:
    return namespace_ref.upper


def _upper_of_pod(pod_ref: PodRef) -> str:
    return pod_ref.upper
