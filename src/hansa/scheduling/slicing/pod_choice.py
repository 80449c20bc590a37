"""The cluster of a pod: one of those where its namespace has slices, with enough of them left and a node that fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hansa.kube import objects
from hansa.model import requests
from hansa.scheduling import evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.plugins import Profile
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.verdict import Closed, Exhausted, Fit, Reason, Refusal, Verdict

Used = Mapping[str, requests.Amounts]  # by cluster


@dataclass(frozen=True, slots=True)
class Seat:
    """The cluster that a pod was given, and what it takes there."""

    cluster: str
    amounts: requests.Amounts


@dataclass(frozen=True, slots=True)
class Seats:
    """All pods that were given a cluster, and what each namespace uses by it. Immutable; it follows single changes."""

    _seats: PersistentMap[objects.NamespacedName, Seat] = field(default_factory=PersistentMap)
    _used: PersistentMap[str, Used] = field(default_factory=PersistentMap)

    def used(self, namespace: str) -> Used:
        """What the pods of a namespace use in each cluster."""
        return self._used.get(namespace) or {}

    def seat(self, pod: objects.NamespacedName) -> Seat | None:
        """The seat of a pod, if it has one."""
        return self._seats.get(pod)

    def seated(self, pod: objects.NamespacedName, seat: Seat | None) -> "Seats":
        """The same after a pod was given a cluster, or has none any more: it is gone, or has finished."""
        old = self._seats.get(pod)
        if old == seat:
            return self
        used = {cluster: dict(amounts) for cluster, amounts in self.used(pod.namespace).items()}
        for one, times in ((old, -1), (seat, 1)):
            if one is not None:
                requests.add(used.setdefault(one.cluster, {}), one.amounts, times)
        used = {cluster: amounts for cluster, amounts in used.items() if amounts}
        return Seats(
            self._seats.without(pod) if seat is None else self._seats.having(pod, seat),
            self._used.having(pod.namespace, used) if used else self._used.without(pod.namespace),
        )


def seat_of(pod: objects.Object, cluster: str) -> Seat | None:
    """The seat of a pod that was given this cluster; None if it was given none, or has finished."""
    return Seat(cluster, requests.asked(pod)) if cluster and not requests.is_finished(pod) else None


def choose(
    ask: PodRequest,
    holding: Holding,
    *,
    used: Used,
    views: Mapping[str, ClusterView],
    avoided: Mapping[str, str] | None = None,
    profile: Profile = evaluation.SPREADING,
) -> Verdict:
    """Choose among the clusters that the namespace holds slices of. `avoided` says where not, and why."""
    fits, refusals = [], []
    for cluster, number in sorted(holding.placements.items()):
        left = {name: nano * number - used.get(cluster, {}).get(name, 0) for name, nano in holding.slice.items()}
        reasons = _against(cluster, ask, left, views, avoided or {})
        said = Refusal(cluster, reasons) if reasons else evaluation.evaluate(ask, views[cluster], profile=profile)
        if isinstance(said, Fit):
            # Slices fill evenly: where most of them is free, a burst that follows finds room, too.
            free = 1 - slices.share(_sum(used.get(cluster, {}), ask.amounts), holding.slice, number)
            fits.append(replace(said, score=said.score + int(free * 100)))
        else:
            refusals.append(said)
    return Verdict(tuple(sorted(fits, key=lambda fit: (-fit.score, fit.cluster))), tuple(refusals))


def _against(
    cluster: str, ask: PodRequest, left: Mapping[str, int], views: Mapping[str, ClusterView], avoided: Mapping[str, str]
) -> tuple[Reason, ...]:
    if cluster in avoided:
        return (Closed(avoided[cluster]),)
    if cluster not in views:
        return (Closed("is not known yet"),)
    asked = ((name, ask.amounts.get(name, 0)) for name in left)
    return tuple(
        Exhausted("the namespace's slices", name, nano, left[name]) for name, nano in asked if nano > left[name]
    )


def _sum(used: Mapping[str, int], amounts: Mapping[str, int]) -> requests.Amounts:
    total = dict(used)
    requests.add(total, amounts)
    return total
