"""One cluster of the pool: its view for pods, its capacity for slices, and whether it is unreachable or lost.

Updated by events of the cluster's caches and of its health.
"""

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hansa.engine.cluster import Cluster
from hansa.kube import objects
from hansa.model import capacity, keys
from hansa.runtime import clock
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing.pool import Headroom, Member, State
from hansa.scheduling.watching.watched_view import Changed, WatchedView


@dataclass(frozen=True, slots=True)
class MemberSettings:
    """The settings of a cluster of the pool, from labels and annotations of its Cluster."""

    labels: dict[str, str]
    headroom: Headroom
    is_leaving: bool = False
    has_agent: bool = False  # it deletes the cluster's pods when it is cut off
    closed: str = ""  # why it gets no new slices, although it is reachable


@dataclass(frozen=True, slots=True)
class LossTimeout:
    """Seconds for which a cluster may be unreachable until it is lost; more with an agent, which deletes its pods."""

    lost_after: float
    fence_grace: float

    def of(self, settings: MemberSettings) -> float:
        """The timeout of a cluster with these settings."""
        return self.lost_after + (self.fence_grace if settings.has_agent else 0.0)


_UNREACHABLE: Final = (State.CLOSED, "unreachable")


class PoolCluster:
    """Watches one cluster from `open` to `close`; `notify` is called when its capacity or state may have changed.

    After `loss_timeout` without contact, its slices and pods are placed elsewhere.
    """

    def __init__(
        self, cluster: Cluster, *, clock: clock.Clock, loss_timeout: LossTimeout, notify: Callable[[str], None]
    ) -> None:
        self.name = cluster.name
        self.settings = MemberSettings({}, Headroom())
        self._cluster, self._clock, self._loss_timeout = cluster, clock, loss_timeout
        self._notify: Callable[[], None] = functools.partial(notify, cluster.name)
        changed = Changed(self._node_changed, self._pod_changed, self._notify)
        self._watched = WatchedView(cluster, clock=clock, changed=changed)
        self._capacity = capacity.Capacity(lambda pod: keys.UPPER in pod.labels)
        self._unreachable_since: float | None = clock.now()
        self._last_reported = -math.inf  # when another process reported it as reachable
        self._timer: asyncio.TimerHandle | None = None
        self._stack = contextlib.AsyncExitStack()

    async def open(self) -> None:
        """Start watching."""
        await self._watched.open()
        self._stack.push_async_callback(self._watched.close)
        self._stack.callback(self._cluster.health.listen(self._health_changed))
        self._stack.callback(self._cancel_timer)
        self._health_changed()
        if self._unreachable_since is not None:
            self._set_timer()

    async def close(self) -> None:
        """Stop watching."""
        await self._stack.aclose()

    @property
    def is_known(self) -> bool:
        """Whether the caches of its nodes and pods have synced."""
        return self._watched.has_synced

    @property
    def is_unreachable(self) -> bool:
        """Whether its API server is unreachable."""
        return self._unreachable_since is not None

    @property
    def state(self) -> tuple[State, str]:
        """Whether it gets and keeps slices, and the reason if it is not open."""
        if self._unreachable_since is not None:
            most = self._loss_timeout.of(self.settings)
            is_lost = self._unreachable_seconds >= most
            return (State.LOST, f"unreachable for more than {most:g} s") if is_lost else _UNREACHABLE
        if not self.is_known:
            return State.CLOSED, "not synced yet"
        if self.settings.is_leaving:
            return State.LEAVING, "leaving the pool"
        return (State.CLOSED if self.settings.closed else State.OPEN), self.settings.closed

    def member(self) -> Member:
        """The cluster for planning."""
        state, reason = self.state
        settings = self.settings
        return Member(self.name, self._capacity.totals().allocatable, settings.labels, state, reason, settings.headroom)

    def view(self) -> ClusterView:
        """The cluster for the choice of a pod's cluster."""
        state, reason = self.state
        return self._watched.view(self.settings.labels, closed="" if state is State.OPEN else reason)

    def reserve(self, key: objects.NamespacedName, request: PodRequest, *, node: str, seconds: float) -> None:
        """Reserve resources for a pod until it is bound."""
        self._watched.reserve(key, request, node=node, seconds=seconds)

    def release(self, key: objects.NamespacedName) -> None:
        """Release a reservation. A bound pod is not affected."""
        self._watched.release(key)

    def update_settings(self, settings: MemberSettings) -> None:
        """Apply changed settings."""
        if settings != self.settings:
            self.settings = replace(settings)
            if self._timer is not None:
                self._set_timer()
            self._notify()

    def report_reachable(self) -> None:
        """A syncer reaches it and deletes copies of moved pods, so it is not lost, although unreachable from here."""
        was_lost, self._last_reported = self.state[0] is State.LOST, self._clock.now()
        if self._unreachable_since is not None:
            self._set_timer()
        if was_lost:
            self._notify()

    def _node_changed(self, key: objects.NamespacedName, node: objects.Object | None) -> None:
        if self._capacity.node(key.name, node):
            self._notify()

    def _pod_changed(self, key: objects.NamespacedName, pod: objects.Object | None, has_left: bool) -> None:
        if self._capacity.pod(key, pod) or has_left:
            self._notify()

    def _health_changed(self) -> None:
        is_unreachable = not self._cluster.health.is_reachable
        if is_unreachable is (self._unreachable_since is not None):
            return
        self._unreachable_since = self._cluster.health.answered if is_unreachable else None
        if is_unreachable:
            self._set_timer()
        else:
            self._cancel_timer()
        self._notify()

    @property
    def _unreachable_seconds(self) -> float:
        """Seconds since it was last reachable from here or reported as reachable."""
        if self._unreachable_since is None:
            return 0.0
        return self._clock.now() - max(self._unreachable_since, self._last_reported)

    def _set_timer(self) -> None:
        """Notify when it becomes lost."""
        self._cancel_timer()
        rest = max(0.0, self._loss_timeout.of(self.settings) - self._unreachable_seconds)
        self._timer = asyncio.get_running_loop().call_later(rest, self._timer_fired)

    def _timer_fired(self) -> None:
        if self.state[0] is State.LOST:
            self._notify()
        else:  # timers may fire slightly early
            self._set_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
