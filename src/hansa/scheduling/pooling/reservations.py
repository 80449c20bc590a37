"""What the schedulers gave away and what was not confirmed yet: slices by namespace, clusters by pod.

Every decision is entered here before it is written, so that two decisions at once never give the same room.
"""

from hansa.kube import objects
from hansa.scheduling.pooling import annotations
from hansa.scheduling.pooling.upper_clusters import NamespaceRef, PodRef
from hansa.scheduling.slicing import placements, pod_choice
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Seat, Seats, Used
from hansa.scheduling.slicing.pool import Pool


class Reservations:
    """The books of one pool."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.pool = Pool()
        self._seats = Seats()
        self._unwritten: set[PodRef] = set()  # pods whose cluster was chosen, and is not written yet

    def holding(self, space: NamespaceRef) -> Holding:
        """What a namespace holds."""
        return self.pool.holding(str(space))

    def hold(self, space: NamespaceRef, holding: Holding) -> bool:
        """Enter what a namespace holds from now on; whether that is news."""
        before = self.holding(space)
        if before == holding or not (before.placements or holding.placements):
            return False
        self.pool = self.pool.with_holding(str(space), holding)
        return True

    def owe(self, space: NamespaceRef, former: Holding) -> bool:
        """Count also what a namespace gives back until that is written; nothing to end it. Whether there was any.

        Others would take it before, and after a crash both would have it.
        """
        key = f"{space} gives back"
        had, owed = self.pool.holding(key), placements.beyond(former, self.holding(space))
        if had.placements or owed.placements:
            self.pool = self.pool.with_holding(key, owed)
        return bool(had.placements)

    def used(self, space: NamespaceRef, *, besides: PodRef | None = None) -> Used:
        """What a namespace's pods use in each cluster; one of them can be left out."""
        seats = self._seats if besides is None else self._seats.seated(_key(besides), None)
        return seats.used(str(space))

    def choose(self, spot: PodRef, seat: Seat) -> None:
        """Enter a choice that is about to be written. Until `settle`, no older word about the pod counts."""
        self._unwritten.add(spot)
        self._seats = self._seats.seated(_key(spot), seat)

    def settle(self, spot: PodRef, pod: objects.Object | None) -> None:
        """A choice was written, or was not: what the pod says counts again."""
        self._unwritten.discard(spot)
        self.observe(spot, pod)

    def observe(self, spot: PodRef, pod: objects.Object | None) -> bool:
        """Take what a pod says of itself; whether it uses less than before."""
        if spot in self._unwritten:
            return False
        before = self._seats.seat(_key(spot))
        after = None if pod is None else pod_choice.seat_of(pod, annotations.cluster_of(pod))
        self._seats = self._seats.seated(_key(spot), after)
        return before is not None and before != after


def _key(spot: PodRef) -> objects.NamespacedName:
    return objects.NamespacedName(str(spot.space), spot.name)
