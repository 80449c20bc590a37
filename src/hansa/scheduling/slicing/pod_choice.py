"""Chooses the cluster of a pod: its namespace has slices there with enough left, and a node fits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import candidates, evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.plugins import Profile
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.verdict import Closed, Exhausted, Reason, Verdict

Used = Mapping[str, requests.Amounts]  # by cluster


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster of a pod, and its requests."""

    cluster: str
    amounts: requests.Amounts


@dataclass(frozen=True, slots=True)
class Assignments:
    """The assignments of all pods, and the sum of requests per namespace and cluster. Immutable."""

    _assignments: PersistentMap[objects.NamespacedName, Assignment] = field(default_factory=PersistentMap)
    _used: PersistentMap[str, Used] = field(default_factory=PersistentMap)

    def used(self, namespace: str) -> Used:
        """What the pods of a namespace request in each cluster."""
        return self._used.get(namespace) or {}

    def get(self, pod: objects.NamespacedName) -> Assignment | None:
        """The assignment of a pod, if it has one."""
        return self._assignments.get(pod)

    def with_assignment(self, pod: objects.NamespacedName, assignment: Assignment | None) -> "Assignments":
        """Assignments with that of one pod set, or removed (None) if the pod is deleted or finished."""
        old = self._assignments.get(pod)
        if old == assignment:
            return self
        used = {cluster: dict(amounts) for cluster, amounts in self.used(pod.namespace).items()}
        for one, times in ((old, -1), (assignment, 1)):
            if one is not None:
                requests.add(used.setdefault(one.cluster, {}), one.amounts, times)
        used = {cluster: amounts for cluster, amounts in used.items() if amounts}
        return Assignments(
            self._assignments.without(pod) if assignment is None else self._assignments.having(pod, assignment),
            self._used.having(pod.namespace, used) if used else self._used.without(pod.namespace),
        )


def assignment_of(pod: objects.Object, cluster: str) -> Assignment | None:
    """The assignment of a pod to this cluster; None if it has no cluster or is finished."""
    return Assignment(cluster, requests.of_pod(pod)) if cluster and not requests.is_finished(pod) else None


def choose(
    request: PodRequest,
    holding: Holding,
    *,
    used: Used,
    views: Mapping[str, ClusterView],
    avoided: Mapping[str, str] | None = None,
    profile: Profile = evaluation.SPREADING,
) -> Verdict:
    """Choose among the clusters where the namespace has slices. `avoided` has clusters to skip, with reasons."""
    tried = []
    for cluster, number in holding.placements.items():
        taken = used.get(cluster, {})
        reasons: tuple[Reason, ...] = tuple(exhausted(request, taken, holding, number))
        if avoided and cluster in avoided:
            reasons = (Closed(avoided[cluster]),)
        # Slices fill evenly, so that a later burst of pods fits in every cluster.
        share = 1 if reasons else slices.share(_sum(taken, request.amounts), holding.slice, number)
        tried.append(candidates.Candidate(cluster, views.get(cluster), reasons, bonus=int((1 - share) * 100)))
    return candidates.choose(request, tried, profile=profile)


def exhausted(request: PodRequest, taken: requests.Amounts, holding: Holding, number: int) -> Iterator[Exhausted]:
    """The resources of which a number of slices has too little left, besides what is taken."""
    for name, nano in holding.slice.items():
        left, requested = nano * number - taken.get(name, 0), request.amounts.get(name, 0)
        if requested > left:
            yield Exhausted("the namespace's slices", name, requested, left)


def _sum(used: Mapping[str, int], amounts: Mapping[str, int]) -> requests.Amounts:
    total = dict(used)
    requests.add(total, amounts)
    return total
