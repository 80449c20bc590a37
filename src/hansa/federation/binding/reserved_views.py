"""The targets' free resources, less those of pods that were placed and that the targets' summaries don't count yet.

A view is built anew for every version of a summary, with other node names: reservations are then made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from hansa.federation.target_views import TargetView
from hansa.kube.objects import NamespacedName
from hansa.scheduling import evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Fit


@dataclass(frozen=True, slots=True)
class _Held:
    target: str
    request: PodRequest


class ReservedViews:
    """The views of all targets by virtual node, with reservations by proxy pod."""

    def __init__(self) -> None:
        self._views: dict[str, TargetView] = {}
        self._free: dict[str, ClusterView] = {}
        self._held: dict[str, dict[NamespacedName, _Held]] = {}  # by target, the oldest first
        self._targets: dict[NamespacedName, str] = {}
        self._ends: dict[NamespacedName, float] = {}  # of pods that run: when the summary counts them for sure
        self._unusable_since: dict[str, float] = {}

    @property
    def views(self) -> Mapping[str, TargetView]:
        """The last view of each target."""
        return self._views

    def update(self, view: TargetView, now: float) -> None:
        """A target has another view."""
        self._views[view.node] = view
        if view.is_usable:
            self._unusable_since.pop(view.node, None)
        else:
            self._unusable_since.setdefault(view.node, now)
        self._free[view.node] = replace(view.scheduling, cluster=view.node)
        for key, held in self._held.get(view.node, {}).items():
            self._reserve(key, held)

    def remove(self, node: str) -> None:
        """A target is gone. Its reservations are kept until their pods are placed elsewhere."""
        for table in (self._views, self._free, self._unusable_since):
            table.pop(node, None)

    def free(self, node: str) -> ClusterView:
        """What is left in a target."""
        return self._free[node]

    def may_take(self, node: str, namespace: str) -> bool:
        """Whether pods of this namespace may be placed in a target; so they may in one that is not known."""
        view = self._views.get(node)
        return view is None or view.link.takes(namespace)

    def unusable_seconds(self, node: str, now: float) -> float:
        """For how long a target has been unusable; 0 if it is not, infinite if it does not exist."""
        if node not in self._views or self._views[node].link.is_leaving:
            return inf
        return now - self._unusable_since.get(node, now)

    def target_of(self, key: NamespacedName) -> str:
        """The target that has a reservation for a pod; empty if none has."""
        return self._targets.get(key, "")

    def held_in(self, target: str) -> list[NamespacedName]:
        """The pods with a reservation in a target."""
        return list(self._held.get(target, ()))

    def hold(self, key: NamespacedName, target: str, request: PodRequest) -> None:
        """Reserve resources for a pod that is placed in a target."""
        self.release(key)
        self._targets[key] = target
        held = self._held.setdefault(target, {})[key] = _Held(target, request)
        self._reserve(key, held)

    def settle(self, key: NamespacedName, until: float) -> None:
        """A pod got its node: its reservation ends at this time. Times never decrease from call to call."""
        if key in self._targets:
            self._ends.setdefault(key, until)

    def release(self, key: NamespacedName) -> bool:
        """End a reservation. Returns whether there was one."""
        self._ends.pop(key, None)
        if (target := self._targets.pop(key, None)) is None:
            return False
        del self._held[target][key]
        if target in self._free:
            self._free[target] = self._free[target].without_pod(key)
        return True

    def expire(self, now: float) -> bool:
        """End the reservations whose time has come. Returns whether there were any."""
        over = []
        for key, until in self._ends.items():
            if until > now:
                break
            over.append(key)
        for key in over:
            self.release(key)
        return bool(over)

    @property
    def next_end(self) -> float:
        """The time at which the next reservation ends."""
        return next(iter(self._ends.values()), inf)

    def _reserve(self, key: NamespacedName, held: _Held) -> None:
        """Reserve on the best node. A pod that fits on none is counted by the summary, or waits in the target."""
        if (view := self._free.get(held.target)) is None or view.closed:
            return
        if isinstance(fit := evaluation.evaluate(held.request, view), Fit):
            self._free[held.target] = view.reserving(key, held.request, node=fit.node, until=inf)
