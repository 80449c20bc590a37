"""The pod scheduler: assigns a pod to a cluster where its namespace has slices, and to another if no node fits there.

A bound pod cannot move: it is deleted, and its owner creates another.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from hansa.control import controller
from hansa.control.event_recorder import EventType, InvolvedObject
from hansa.kube import errors, objects, resources
from hansa.model import keys, requests
from hansa.model.placement import node_of
from hansa.runtime import clock
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NAMESPACE, NamespaceRef, PodRef, Upper, Uppers
from hansa.scheduling.slicing import annotations, pod_choice
from hansa.scheduling.slicing.pod_choice import Assignment
from hansa.scheduling.slicing.pool import State
from hansa.scheduling.verdict import Fit

log = logging.getLogger(__name__)
Below = Callable[[str, str], str]  # maps an upper cluster and its namespace to the name in lower clusters
RESERVATION_SECONDS = 60.0  # for an assigned pod until it is bound
# For a new cluster to find a node: until then, the condition PodScheduled may still be that of the former one.
SCHEDULING_SECONDS = 15.0
AVOID_SECONDS = 120.0  # until a cluster that found no node is tried again


@dataclass(slots=True)
class _Attempt:
    """The scheduling attempts of a pod: the time of its assignment, and clusters that found no node for it."""

    uid: str
    since: float
    failed: dict[str, tuple[float, str]] = field(default_factory=dict)  # end of avoidance, and reason


class PodScheduler:
    """Reconciles pods. `below` maps namespaces of upper clusters to their names in lower clusters.

    Pods of `unsliced` namespaces may be assigned to any cluster where another namespace of the upper cluster is placed.
    """

    def __init__(
        self,
        uppers: Uppers,
        clusters: PoolClusters,
        reservations: Reservations,
        *,
        below: Below,
        unsliced: frozenset[str] = frozenset(),
        clock: clock.Clock,
    ) -> None:
        self._uppers, self._clusters, self._reservations = uppers, clusters, reservations
        self._below, self._unsliced, self._clock = below, unsliced, clock
        self._attempts: dict[PodRef, _Attempt] = {}
        self.pending: set[PodRef] = set()  # without a cluster
        self.moving: set[PodRef] = set()  # a former cluster may still have a copy

    async def reconcile(self, pod_ref: PodRef) -> controller.Outcome:
        """Assign a pod to a cluster, or evict it from one that its namespace left."""
        upper = self._uppers.get(pod_ref.upper)
        pod = upper.pods.get(pod_ref.key) if upper is not None and upper.is_known else None
        if upper is None or pod is None or pod.is_deleting or requests.is_finished(pod):
            for refs in (self.pending, self.moving):
                refs.discard(pod_ref)
            self._attempts.pop(pod_ref, None)
            return controller.Done()
        pod = await self._remove_stale_marks(pod_ref, upper, pod)
        assigned = annotations.cluster_of(pod)
        is_placed = self._is_placed(pod_ref, upper, assigned)
        if assigned and node_of(pod):
            self.pending.discard(pod_ref)
            if not is_placed:
                await self._evict(upper, pod, assigned)
            return controller.Done()
        if is_placed and not (reason := annotations.unschedulable(pod)):
            self.pending.discard(pod_ref)
            self._restore_reservation(pod_ref, pod, assigned)
            return controller.Done()
        if is_placed and (rest := self._record_failure(pod_ref, pod, assigned, reason)) > 0:
            return controller.After(rest)
        return await self._place(pod_ref, upper, pod, assigned)

    def unsliced_pods(self, upper: Upper) -> list[PodRef]:
        """The pods of an upper cluster whose place depends on other namespaces."""
        found = [pod for namespace in self._unsliced for pod in upper.pods.find(NAMESPACE, namespace)]
        return [PodRef(upper.name, pod.namespace, pod.name) for pod in found]

    def _is_placed(self, pod_ref: PodRef, upper: Upper, assigned: str) -> bool:
        """Whether the namespace of a pod is placed in the cluster that it is assigned to."""
        names = [namespace.name for namespace in upper.namespaces] if pod_ref.namespace in self._unsliced else []
        return any(
            assigned in self._reservations.holding(NamespaceRef(pod_ref.upper, name)).placements
            for name in (pod_ref.namespace, *names)
        )

    async def _remove_stale_marks(self, pod_ref: PodRef, upper: Upper, pod: objects.Object) -> objects.Object:
        """Remove the moved-from annotations of lost clusters: no syncer confirms that their copies are deleted."""
        marked = annotations.moved_from(pod)
        if marked or pod_ref in self.moving:  # the new copy is created when the last mark is removed
            self._attempts.setdefault(pod_ref, _Attempt(pod.uid, 0.0)).since = self._clock.now()
        (self.moving.add if marked else self.moving.discard)(pod_ref)
        if not (lost := [cluster for cluster in marked if self._is_lost(cluster)]):
            return pod
        marks = dict.fromkeys(f"{keys.MOVED_FROM}{cluster}" for cluster in lost)
        patch = {"metadata": {"uid": pod.uid, "annotations": marks}}
        written = await upper.client.patch(resources.PODS, pod.name, patch, namespace=pod.namespace)
        upper.pods.observe(written)
        return written

    def _is_lost(self, cluster: str) -> bool:
        return self._clusters.state(cluster) is State.LOST

    def _restore_reservation(self, pod_ref: PodRef, pod: objects.Object, assigned: str) -> None:
        """Reserve resources for a pod that was assigned before this process started, and may not be bound yet."""
        pool_cluster = self._clusters.get(assigned)
        if pod_ref in self._attempts or pool_cluster is None or not pool_cluster.is_known:
            return
        self._attempts[pod_ref] = _Attempt(pod.uid, self._clock.now())
        request = self._request(pod_ref, pod)
        if isinstance(fit := evaluation.evaluate(request, pool_cluster.view()), Fit):
            key = objects.NamespacedName(request.namespace, pod.name)
            pool_cluster.reserve(key, request, node=fit.node, seconds=RESERVATION_SECONDS)

    def _request(self, pod_ref: PodRef, pod: objects.Object) -> pod_request.PodRequest:
        return pod_request.of_pod(pod, lambda namespace: self._below(pod_ref.upper, namespace))

    def _record_failure(self, pod_ref: PodRef, pod: objects.Object, assigned: str, reason: str) -> float:
        """Record that a cluster found no node. Returns the seconds to wait if the assignment is too recent for that."""
        now, attempt = self._clock.now(), self._attempts.get(pod_ref)
        if attempt is None or attempt.uid != pod.uid:
            attempt = self._attempts[pod_ref] = _Attempt(pod.uid, now - SCHEDULING_SECONDS)
        if (rest := attempt.since + SCHEDULING_SECONDS - now) > 0:
            return rest
        attempt.failed[assigned] = (now + AVOID_SECONDS, f"its scheduler found no node: {reason}")
        return 0.0

    async def _place(self, pod_ref: PodRef, upper: Upper, pod: objects.Object, assigned: str) -> controller.Outcome:
        request = self._request(pod_ref, pod)
        avoided = self._avoided(pod_ref, pod)
        verdict = pod_choice.choose(
            request,
            self._reservations.holding(pod_ref.namespace_ref),
            used=self._reservations.used(pod_ref.namespace_ref, besides=pod_ref),
            views=self._clusters.views(),
            avoided=avoided,
        )
        if verdict.best is None:
            self.pending.add(pod_ref)
            reason = (
                str(verdict)
                if verdict.refusals
                else f"namespace {pod.namespace} has no slices: create a ResourceQuota in it"
            )
            upper.recorder.record(InvolvedObject.of(pod), "FailedScheduling", reason, event_type=EventType.WARNING)
            return controller.After(AVOID_SECONDS) if avoided else controller.Done()
        if verdict.best.cluster != assigned:
            await self._assign(pod_ref, upper, pod, request, verdict.best)
        self.pending.discard(pod_ref)
        return controller.Done()

    async def _assign(
        self, pod_ref: PodRef, upper: Upper, pod: objects.Object, request: pod_request.PodRequest, fit: Fit
    ) -> None:
        key, pool_cluster = objects.NamespacedName(request.namespace, pod.name), self._clusters.get(fit.cluster)
        self._reservations.choose(pod_ref, Assignment(fit.cluster, request.amounts))
        if pool_cluster is not None:
            pool_cluster.reserve(key, request, node=fit.node, seconds=RESERVATION_SECONDS)
        metadata = {"uid": pod.uid, "resourceVersion": pod.version, "annotations": self._marks(pod, fit.cluster)}
        patch = {"metadata": metadata}
        try:
            written = await upper.client.patch(resources.PODS, pod.name, patch, namespace=pod.namespace)
            upper.pods.observe(written)
        except errors.ApiError:
            if pool_cluster is not None:
                pool_cluster.release(key)
            raise
        finally:
            self._reservations.settle(pod_ref, upper.pods.get(pod_ref.key))
        attempt = self._attempts.setdefault(pod_ref, _Attempt(pod.uid, 0.0))
        attempt.since = self._clock.now()

    def _marks(self, pod: objects.Object, cluster: str) -> dict[str, str | None]:
        """The annotations for an assignment. Moved-from marks delay the new copy until the former one is deleted.

        They are in the same patch as the assignment, so that a crash can't separate them. A lost cluster gets none.
        """
        assigned, later = annotations.cluster_of(pod), keys.SUPER_CLUSTER.replace(*keys.POOL, 1)
        marks: dict[str, str | None] = {keys.SUPER_CLUSTER: cluster, later: None}
        if cluster in annotations.moved_from(pod):
            marks[f"{keys.MOVED_FROM}{cluster}"] = None
        if assigned and not self._is_lost(assigned):
            marks[f"{keys.MOVED_FROM}{assigned}"] = ""
        return marks

    async def _evict(self, upper: Upper, pod: objects.Object, assigned: str) -> None:
        """Delete a bound pod in a cluster where its namespace has no slices any more."""
        is_lost = self._is_lost(assigned)
        reason = f"namespace {pod.namespace} has no slices in {assigned}" + (", which is lost" if is_lost else "")
        upper.recorder.record(InvolvedObject.of(pod), "Evicted", reason, event_type=EventType.WARNING)
        log.warning("pod evicted", extra={"cluster": upper.name, "pod": str(pod.key), "from": assigned})
        try:
            # In a lost cluster, no kubelet confirms that the pod ended.
            await upper.client.delete(
                resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=0 if is_lost else None
            )
        except (errors.NotFound, errors.Conflict) as error:
            log.info("pod not evicted", extra={"cluster": upper.name, "pod": str(pod.key), "error": str(error)})

    def _avoided(self, pod_ref: PodRef, pod: objects.Object) -> dict[str, str]:
        attempt, now = self._attempts.get(pod_ref), self._clock.now()
        if attempt is None or attempt.uid != pod.uid:
            return {}
        return {cluster: reason for cluster, (until, reason) in attempt.failed.items() if now < until}
