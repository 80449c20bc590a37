"""Computes the state of a lower cluster from its caches and its health, for the virtual node that represents it."""

from collections.abc import Callable
from typing import Protocol

from hansa.control import store, table
from hansa.kube import objects
from hansa.model import capacity, stamp
from hansa.nodes import lower_state
from hansa.nodes.lower_state import LowerState, Problem
from hansa.nodes.settings import NodeSettings
from hansa.runtime import clock

UNREACHABLE, UNLISTED = "LowerClusterUnreachable", "LowerClusterUnlisted"


class Lower(Protocol):
    """What a virtual node needs of a lower cluster: its nodes, pods, version, and whether it is reachable."""

    @property
    def nodes(self) -> store.Store: ...

    @property
    def pods(self) -> store.Store: ...

    @property
    def version(self) -> str:
        """The version of its API server; empty until it is known."""

    @property
    def error(self) -> str:
        """Why it is unreachable; empty while it is reachable."""

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` when version or error changes. Returns a function that ends this."""


class Monitor(Protocol):
    """What a virtual node reports: the state of the cluster that it represents, until it is closed."""

    @property
    def settings(self) -> NodeSettings: ...

    def state(self) -> LowerState | None:
        """The current state; None until it is complete, or should have been."""

    def close(self) -> None:
        """Stop watching."""


class LowerMonitor:
    """The state of one lower cluster, updated by events; `changed` is called when it may have changed.

    For the first `patience` seconds, an incomplete state is not reported as a problem.
    """

    def __init__(
        self,
        settings: NodeSettings,
        lower: Lower,
        *,
        upper_id: str,
        changed: Callable[[], None],
        clock: clock.Clock,
        patience: float,
    ) -> None:
        self.settings = settings
        self._lower, self._changed, self._clock = lower, changed, clock
        self._until = clock.now() + patience
        self._capacity = capacity.Capacity(
            lambda pod: (origin := stamp.of(pod)) is not None and origin.upper == upper_id,
            tolerated=settings.tolerated,
            label_keys=lower_state.LABELS,
        )
        self._summary: lower_state.NodeSummary | None = None
        self._ends = (
            lower.nodes.listen(self._update_node, table.own_key),
            lower.pods.listen(self._update_pod, table.own_key),
            lower.nodes.freshness.listen(lambda _: changed()),
            lower.pods.freshness.listen(lambda _: changed()),
            lower.listen(changed),
        )

    def state(self) -> LowerState | None:
        """The current state; None until the first lists are complete or `patience` has passed."""
        if not self._is_complete and self._clock.now() < self._until:
            return None
        if self._summary is None:
            self._summary = lower_state.summarize(self._capacity.node_infos())
        return LowerState(self.settings, self._capacity.totals(), self._summary, self._lower.version, self._problem())

    def close(self) -> None:
        """Stop watching."""
        for end in self._ends:
            end()

    @property
    def _is_complete(self) -> bool:
        lower = self._lower
        return bool(lower.version) and lower.nodes.freshness.has_synced and lower.pods.freshness.has_synced

    def _problem(self) -> Problem | None:
        if self._lower.error:
            return Problem(UNREACHABLE, self._lower.error)
        for cache in (self._lower.nodes, self._lower.pods):
            if not cache.freshness.is_known:
                return Problem(UNLISTED, f"cannot watch {cache.name}: {cache.freshness.error}")
        return None

    def _update_node(self, key: objects.NamespacedName) -> None:
        if self._capacity.node(key.name, self._lower.nodes.get(key)):
            self._summary = None
            self._changed()

    def _update_pod(self, key: objects.NamespacedName) -> None:
        if self._capacity.pod(key, self._lower.pods.get(key)):
            self._changed()
