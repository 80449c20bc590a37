"""The pod scheduler: gives each pod one of the clusters where its namespace has slices, and another when that fails.

A pod that is bound to a node cannot move: it is deleted, and who owns it makes another.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from hansa.control import controller
from hansa.control.event_recorder import Kind, Subject
from hansa.kube import errors, objects, resources
from hansa.model import keys, requests
from hansa.model.placement import node_of
from hansa.runtime import clock
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.pooling import annotations
from hansa.scheduling.pooling.pool_clusters import PoolClusters
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import PodRef, Upper, Uppers
from hansa.scheduling.slicing import pod_choice
from hansa.scheduling.slicing.pod_choice import Seat
from hansa.scheduling.slicing.pool import State
from hansa.scheduling.verdict import Fit

log = logging.getLogger(__name__)
Below = Callable[[str, str], str]  # the name that a namespace of an upper cluster has in lower ones
RESERVED = 60.0  # seconds for which room is kept for a pod that was sent and is not bound yet
TRUSTED = 15.0  # seconds in which a new cluster need not find a node: until then the old one's word stands on the pod
AVOIDED = 120.0  # seconds for which a cluster that found no node is not asked again


@dataclass(slots=True)
class _Trial:
    """What was tried for a pod: since when it is where it is, and which clusters found no node for it."""

    uid: str
    since: float
    failed: dict[str, tuple[float, str]] = field(default_factory=dict)  # until when, and why


class PodScheduler:
    """Chooses for one pod at a time. `below` names a namespace of an upper cluster as lower clusters do."""

    def __init__(
        self, uppers: Uppers, landscape: PoolClusters, ledger: Reservations, *, below: Below, clock: clock.Clock
    ) -> None:
        self._uppers, self._landscape, self._ledger, self._below, self._clock = uppers, landscape, ledger, below, clock
        self._trials: dict[PodRef, _Trial] = {}
        self.waiting: set[PodRef] = set()
        self.moving: set[PodRef] = set()  # those that a cluster which they left may still have

    async def reconcile(self, spot: PodRef) -> controller.Outcome:
        """Give a pod its cluster."""
        upper = self._uppers.get(spot.upper)
        pod = upper.pods.get(spot.key) if upper is not None and upper.is_known else None
        if upper is None or pod is None or pod.is_leaving or requests.is_finished(pod):
            for spots in (self.waiting, self.moving):
                spots.discard(spot)
            self._trials.pop(spot, None)
            return controller.Done()
        pod = await self._unmark(spot, upper, pod)
        given = annotations.cluster_of(pod)
        is_placed = given in self._ledger.holding(spot.space).placements
        if given and node_of(pod):
            self.waiting.discard(spot)
            if not is_placed:
                await self._evict(upper, pod, given)
            return controller.Done()
        if is_placed and not (why := annotations.unschedulable(pod)):
            self.waiting.discard(spot)
            self._remember(spot, pod, given)
            return controller.Done()
        if is_placed and (rest := self._blame(spot, pod, given, why)) > 0:
            return controller.After(rest)
        return await self._place(spot, upper, pod, given)

    async def _unmark(self, spot: PodRef, upper: Upper, pod: objects.Object) -> objects.Object:
        """Take off the marks of clusters that cannot say any more that they have no copy."""
        marked = annotations.moved_from(pod)
        if marked or spot in self.moving:  # its new cluster begins to look for a node when the last mark is off
            self._trials.setdefault(spot, _Trial(pod.uid, 0.0)).since = self._clock.now()
        (self.moving.add if marked else self.moving.discard)(spot)
        if not (lost := [cluster for cluster in marked if self._is_lost(cluster)]):
            return pod
        marks = dict.fromkeys(f"{keys.MOVED_FROM}{cluster}" for cluster in lost)
        patch = {"metadata": {"uid": pod.uid, "annotations": marks}}
        written = await upper.client.patch(resources.PODS, pod.name, patch, namespace=pod.namespace)
        upper.pods.observe(written)
        return written

    def _is_lost(self, cluster: str) -> bool:
        land = self._landscape.land(cluster)
        return land is None or land.state[0] is State.LOST

    def _remember(self, spot: PodRef, pod: objects.Object, given: str) -> None:
        """Keep room for a pod that was sent before we began, and may not be bound yet."""
        land = self._landscape.land(given)
        if spot in self._trials or land is None or not land.is_known:
            return
        self._trials[spot] = _Trial(pod.uid, self._clock.now())
        ask = self._ask(spot, pod)
        if isinstance(fit := evaluation.evaluate(ask, land.view()), Fit):
            land.reserve(objects.NamespacedName(ask.namespace, pod.name), ask, node=fit.node, seconds=RESERVED)

    def _ask(self, spot: PodRef, pod: objects.Object) -> pod_request.PodRequest:
        return pod_request.of_pod(pod, lambda namespace: self._below(spot.upper, namespace))

    def _blame(self, spot: PodRef, pod: objects.Object, given: str, why: str) -> float:
        """Remember that a cluster found no node; or, so shortly after the choice, for how long to wait yet."""
        now, trial = self._clock.now(), self._trials.get(spot)
        if trial is None or trial.uid != pod.uid:
            trial = self._trials[spot] = _Trial(pod.uid, now - TRUSTED)
        if (rest := trial.since + TRUSTED - now) > 0:
            return rest
        trial.failed[given] = (now + AVOIDED, f"found no node for it: {why}")
        return 0.0

    async def _place(self, spot: PodRef, upper: Upper, pod: objects.Object, given: str) -> controller.Outcome:
        ask = self._ask(spot, pod)
        avoided = self._avoided(spot, pod)
        verdict = pod_choice.choose(
            ask,
            self._ledger.holding(spot.space),
            used=self._ledger.used(spot.space, besides=spot),
            views=self._landscape.views(),
            avoided=avoided,
        )
        if verdict.best is None:
            self.waiting.add(spot)
            why = str(verdict) if verdict.refusals else "its namespace has no slices: give it a quota"
            upper.recorder.record(Subject.of(pod), "NoCluster", why, kind=Kind.WARNING)
            return controller.After(AVOIDED) if avoided else controller.Done()
        if verdict.best.cluster != given:
            await self._give(spot, upper, pod, ask, verdict.best)
        self.waiting.discard(spot)
        return controller.Done()

    async def _give(
        self, spot: PodRef, upper: Upper, pod: objects.Object, ask: pod_request.PodRequest, fit: Fit
    ) -> None:
        there, land = objects.NamespacedName(ask.namespace, pod.name), self._landscape.land(fit.cluster)
        self._ledger.choose(spot, Seat(fit.cluster, ask.amounts))
        if land is not None:
            land.reserve(there, ask, node=fit.node, seconds=RESERVED)
        metadata = {"uid": pod.uid, "resourceVersion": pod.version, "annotations": self._marks(pod, fit.cluster)}
        patch = {"metadata": metadata}
        try:
            written = await upper.client.patch(resources.PODS, pod.name, patch, namespace=pod.namespace)
            upper.pods.observe(written)
        except errors.ApiError:
            if land is not None:
                land.release(there)
            raise
        finally:
            self._ledger.settle(spot, upper.pods.get(spot.key))
        trial = self._trials.setdefault(spot, _Trial(pod.uid, 0.0))
        trial.since = self._clock.now()

    def _marks(self, pod: objects.Object, cluster: str) -> dict[str, str | None]:
        """The annotations of a pod that goes to a cluster: it begins there when the former one has no copy any more.

        The mark comes with the choice itself, so that no crash comes between. A lost cluster could not take it off.
        """
        given, later = annotations.cluster_of(pod), keys.SUPER_CLUSTER.replace(*keys.POOL, 1)
        marks: dict[str, str | None] = {keys.SUPER_CLUSTER: cluster, later: None}
        if cluster in annotations.moved_from(pod):
            marks[f"{keys.MOVED_FROM}{cluster}"] = None
        if given and not self._is_lost(given):
            marks[f"{keys.MOVED_FROM}{given}"] = ""
        return marks

    async def _evict(self, upper: Upper, pod: objects.Object, given: str) -> None:
        """The namespace left the cluster that the pod is bound in."""
        is_lost = self._is_lost(given)
        why = f"its namespace has no slices in {given} any more" + (", which is lost" if is_lost else "")
        upper.recorder.record(Subject.of(pod), "Evicted", why, kind=Kind.WARNING)
        log.warning("a pod is evicted", extra={"cluster": upper.name, "pod": str(pod.key), "from": given})
        try:
            # Nobody there can confirm that it ended.
            await upper.client.delete(
                resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid, grace=0 if is_lost else None
            )
        except (errors.NotFound, errors.Conflict) as error:
            log.info("a pod was not evicted", extra={"pod": str(pod.key), "error": str(error)})

    def _avoided(self, spot: PodRef, pod: objects.Object) -> dict[str, str]:
        trial, now = self._trials.get(spot), self._clock.now()
        if trial is None or trial.uid != pod.uid:
            return {}
        return {cluster: why for cluster, (until, why) in trial.failed.items() if now < until}
