"""Following a lower cluster: from its caches and its health to the facts that a virtual node tells."""

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
    """A lower cluster as a virtual node needs it: all its nodes and pods, and whether it can be reached."""

    @property
    def nodes(self) -> store.Store: ...

    @property
    def pods(self) -> store.Store: ...

    @property
    def version(self) -> str:
        """The version of its API server; empty while it is not known."""

    @property
    def trouble(self) -> str:
        """Why it cannot be reached, in a sentence; empty while it can."""

    def listen(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Tell `notify` when the version or the trouble changes. The answer ends it."""


class LowerMonitor:
    """The facts of one virtual node, kept by listening; `changed` is called when they may have changed.

    The first lists and the version have `patience` seconds to come; until then no trouble is told.
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
            consent=settings.consent,
            label_keys=lower_state.LABELS,
        )
        self._landscape: lower_state.NodeSurvey | None = None
        self._ends = (
            lower.nodes.listen(self._look_at_node, table.own_key),
            lower.pods.listen(self._look_at_pod, table.own_key),
            lower.nodes.knowledge.listen(lambda _: changed()),
            lower.pods.knowledge.listen(lambda _: changed()),
            lower.listen(changed),
        )

    def facts(self) -> LowerState | None:
        """All that is known now; None while the first of it may still come."""
        if not self._is_complete and self._clock.now() < self._until:
            return None
        if self._landscape is None:
            self._landscape = lower_state.survey(self._capacity.grounds())
        return LowerState(self.settings, self._capacity.totals(), self._landscape, self._lower.version, self._trouble())

    def close(self) -> None:
        """Listen no more."""
        for end in self._ends:
            end()

    @property
    def _is_complete(self) -> bool:
        lower = self._lower
        return bool(lower.version) and lower.nodes.knowledge.is_complete and lower.pods.knowledge.is_complete

    def _trouble(self) -> Problem | None:
        if self._lower.trouble:
            return Problem(UNREACHABLE, self._lower.trouble)
        for cache in (self._lower.nodes, self._lower.pods):
            if not cache.knowledge.is_known:
                return Problem(UNLISTED, f"cannot follow {cache.name}: {cache.knowledge.trouble}")
        return None

    def _look_at_node(self, key: objects.NamespacedName) -> None:
        if self._capacity.node(key.name, self._lower.nodes.get(key)):
            self._landscape = None
            self._changed()

    def _look_at_pod(self, key: objects.NamespacedName) -> None:
        if self._capacity.pod(key, self._lower.pods.get(key)):
            self._changed()
