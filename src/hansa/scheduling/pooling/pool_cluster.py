"""One cluster of the pool as it is watched: its view, what it offers to slices, and how long it is away.

Its nodes and pods come from the cluster's caches; each change is followed, nothing is computed anew.
"""

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from hansa.control import table
from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.kube import objects, resources
from hansa.model import capacity, keys
from hansa.runtime import clock
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing.pool import Headroom, Member, State


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """What people say about a cluster of the pool."""

    labels: dict[str, str]
    headroom: Headroom
    is_leaving: bool = False
    has_agent: bool = False  # which ends its pods when it is cut off


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for which a cluster may be away; an agent there then has some more, in which its pods end."""

    lost_after: float
    fence_grace: float

    def of(self, facts: ClusterIdentity) -> float:
        """For how long this one may be away."""
        return self.lost_after + (self.fence_grace if facts.has_agent else 0.0)


_AWAY: Final = (State.CLOSED, "cannot be reached")


class PoolCluster:
    """Watches one cluster from `open` to `close`; `notify` is told when there may be more or less room.

    `patience` is for how long it may be away before what it has is placed elsewhere.
    """

    def __init__(
        self, cluster: Cluster, *, clock: clock.Clock, patience: Patience, notify: Callable[[str], None]
    ) -> None:
        self.name = cluster.name
        self.facts = ClusterIdentity({}, Headroom())
        self._cluster, self._clock, self._patience = cluster, clock, patience
        self._notify: Callable[[], None] = functools.partial(notify, cluster.name)
        self._view = ClusterView(cluster.name)
        self._capacity = capacity.Capacity(lambda pod: keys.UPPER in pod.labels)
        self._away_since: float | None = clock.now()
        self._vouched = -math.inf  # when somebody else reached it
        self._timer: asyncio.TimerHandle | None = None
        self._stack = contextlib.AsyncExitStack()

    async def open(self) -> None:
        """Begin to watch."""
        informers = self._cluster.informers
        self._nodes = await self._stack.enter_async_context(informers.share(Scope(resources.NODES)))
        self._pods = await self._stack.enter_async_context(informers.share(Scope(resources.PODS)))
        ends = (
            self._nodes.listen(self._node_changed, table.own_key),
            self._pods.listen(self._pod_changed, table.own_key),
            self._nodes.knowledge.listen(lambda _: self._notify()),
            self._pods.knowledge.listen(lambda _: self._notify()),
            self._cluster.health.listen(self._look_at_health),
        )
        for end in ends:
            self._stack.callback(end)
        self._stack.callback(self._cancel_timer)
        self._look_at_health()
        if self._away_since is not None:
            self._set_timer()

    async def close(self) -> None:
        """Watch no longer."""
        await self._stack.aclose()

    @property
    def is_known(self) -> bool:
        """Whether its nodes and pods were listed."""
        return self._nodes.knowledge.is_complete and self._pods.knowledge.is_complete

    @property
    def is_away(self) -> bool:
        """Whether its API server does not answer."""
        return self._away_since is not None

    @property
    def state(self) -> tuple[State, str]:
        """What may happen to the slices there, and why."""
        if self._away_since is not None:
            most = self._patience.of(self.facts)
            is_lost = self._away >= most
            return (State.LOST, f"cannot be reached for {most:g} s and longer") if is_lost else _AWAY
        if not self.is_known:
            return State.CLOSED, "is not known yet"
        return (State.LEAVING, "is leaving the pool") if self.facts.is_leaving else (State.OPEN, "")

    def member(self) -> Member:
        """The cluster as planning sees it."""
        state, why = self.state
        facts = self.facts
        return Member(self.name, self._capacity.totals().allocatable, facts.labels, state, why, facts.headroom)

    def view(self) -> ClusterView:
        """The cluster as a pod's choice sees it."""
        self._view = self._view.at(self._clock.now())
        state, why = self.state
        closed = "" if state is State.OPEN else why
        if (self._view.closed, self._view.labels) != (closed, self.facts.labels):
            self._view = self._view.with_cluster(self.facts.labels, closed=closed)
        return self._view

    def reserve(self, key: objects.NamespacedName, ask: PodRequest, *, node: str, seconds: float) -> None:
        """Keep room for a pod that is on its way."""
        self._view = self._view.reserving(key, ask, node=node, until=self._clock.now() + seconds)

    def release(self, key: objects.NamespacedName) -> None:
        """Give up what was kept for a pod that does not come. A pod that is there counts as long as it is."""
        if key in self._view.reservations:
            self._view = self._view.without_pod(key)

    def learn(self, facts: ClusterIdentity) -> None:
        """People say something else about it."""
        if facts != self.facts:
            self.facts = replace(facts)
            if self._timer is not None:
                self._set_timer()
            self._notify()

    def vouch(self) -> None:
        """Somebody else reaches it, who removes copies of what is moved: it is not lost, although we don't see it."""
        was_lost, self._vouched = self.state[0] is State.LOST, self._clock.now()
        if self._away_since is not None:
            self._set_timer()
        if was_lost:
            self._notify()

    def _node_changed(self, key: objects.NamespacedName) -> None:
        node = self._nodes.get(key)
        self._view = self._view.without_node(key.name) if node is None else self._view.with_node(node)
        if self._capacity.node(key.name, node):
            self._notify()

    def _pod_changed(self, key: objects.NamespacedName) -> None:
        pod, before = self._pods.get(key), self._view
        self._view = before.without_pod(key) if pod is None else before.with_pod(pod)
        is_felt = self._capacity.pod(key, pod)
        if is_felt or len(self._view.residents) < len(before.residents):
            self._notify()

    def _look_at_health(self) -> None:
        is_away = not self._cluster.health.is_reachable
        if is_away is (self._away_since is not None):
            return
        self._away_since = self._cluster.health.answered if is_away else None
        if is_away:
            self._set_timer()
        else:
            self._cancel_timer()
        self._notify()

    @property
    def _away(self) -> float:
        """For how many seconds nobody reaches it."""
        return 0.0 if self._away_since is None else self._clock.now() - max(self._away_since, self._vouched)

    def _set_timer(self) -> None:
        """Look again when it is away for too long."""
        self._cancel_timer()
        rest = max(0.0, self._patience.of(self.facts) - self._away)
        self._timer = asyncio.get_running_loop().call_later(rest, self._time_is_up)

    def _time_is_up(self) -> None:
        if self.state[0] is State.LOST:
            self._notify()
        else:  # a loop's time is coarser than the clock's
            self._set_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
