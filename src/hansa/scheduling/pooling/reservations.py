"""The slices of namespaces and the assignments of pods, including those that are not written yet.

Every decision is recorded here before its write, so that concurrent decisions never use the same capacity twice.
"""

from hansa.kube import objects
from hansa.scheduling.pooling.upper_clusters import NamespaceRef, PodRef
from hansa.scheduling.slicing import annotations, placements, pod_choice
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Assignment, Assignments, Used
from hansa.scheduling.slicing.pool import Pool


class Reservations:
    """The reservations of one pool."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all reservations."""
        self.pool = Pool()
        self._assignments = Assignments()
        self._unwritten: set[PodRef] = set()  # pods whose assignment is not written yet

    def holding(self, namespace_ref: NamespaceRef) -> Holding:
        """The slices of a namespace."""
        return self.pool.holding(str(namespace_ref))

    def hold(self, namespace_ref: NamespaceRef, holding: Holding) -> bool:
        """Record the slices of a namespace. Returns whether they changed."""
        before = self.holding(namespace_ref)
        if before == holding or not (before.placements or holding.placements):
            return False
        self.pool = self.pool.with_holding(str(namespace_ref), holding)
        return True

    def hold_until_written(self, namespace_ref: NamespaceRef, former: Holding) -> bool:
        """Also count the slices of a former holding until the new one is written. Returns whether any were counted.

        An empty holding ends it. Otherwise others could use that capacity, and after a crash both would have it.
        """
        key = f"{namespace_ref} former"
        had, held = self.pool.holding(key), placements.excess(former, self.holding(namespace_ref))
        if had.placements or held.placements:
            self.pool = self.pool.with_holding(key, held)
        return bool(had.placements)

    def used(self, namespace_ref: NamespaceRef, *, besides: PodRef | None = None) -> Used:
        """The requests of a namespace's pods in each cluster, without those of `besides`."""
        assignments = self._assignments if besides is None else self._assignments.with_assignment(_key(besides), None)
        return assignments.used(str(namespace_ref))

    def choose(self, pod_ref: PodRef, assignment: Assignment) -> None:
        """Record an assignment before its write. Until `settle`, events of the pod don't change it."""
        self._unwritten.add(pod_ref)
        self._assignments = self._assignments.with_assignment(_key(pod_ref), assignment)

    def settle(self, pod_ref: PodRef, pod: objects.Object | None) -> None:
        """Replace the recorded assignment by the pod's annotation, after the write succeeded or failed."""
        self._unwritten.discard(pod_ref)
        self.observe(pod_ref, pod)

    def observe(self, pod_ref: PodRef, pod: objects.Object | None) -> bool:
        """Record the assignment in a pod's annotation. Returns whether the former one was removed or replaced."""
        if pod_ref in self._unwritten:
            return False
        before = self._assignments.get(_key(pod_ref))
        after = None if pod is None else pod_choice.assignment_of(pod, annotations.cluster_of(pod))
        self._assignments = self._assignments.with_assignment(_key(pod_ref), after)
        return before is not None and before != after


def _key(pod_ref: PodRef) -> objects.NamespacedName:
    return objects.NamespacedName(str(pod_ref.namespace_ref), pod_ref.name)
