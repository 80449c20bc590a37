"""One target: its cluster while it is connected, its summary, and what its virtual node and the binder see of it.

The target controller connects and disconnects it. Until it is connected, and after, it has a problem as reason.
"""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from hansa.control.informer import Scope
from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.federation import api, summaries
from hansa.federation.api import CLUSTER_SUMMARIES, PROVIDER, SUMMARY, Target
from hansa.federation.summaries import TargetSummary
from hansa.federation.summary_reader import SummaryReader
from hansa.federation.target_views import TargetView
from hansa.kube.language.tolerations import Effect, Taint
from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet.node_servers import Endpoint
from hansa.model import keys
from hansa.model.translation.federation.target_link import TargetLink
from hansa.nodes.lower_state import LowerState, Problem
from hansa.nodes.settings import NodeSettings
from hansa.runtime import clock, listeners

SUMMARIES: Final = Scope(CLUSTER_SUMMARIES, fields=f"metadata.name={SUMMARY}")
NAME: Final = NamespacedName("", SUMMARY)
UNREACHABLE, LEAVING, CONNECTING = "Unreachable", "Leaving", "Connecting"
NO_SUMMARY, BAD_SUMMARY = "NoClusterSummary", "BadClusterSummary"
FIRST_SYNC: Final = 10.0  # seconds to connect and to read the summary; before that it is no problem
NOT_CONNECTED: Final = Problem(CONNECTING, "not connected yet")


@dataclass(slots=True)
class _Connection:
    cluster: Cluster
    store: Store
    ends: tuple[Callable[[], None], ...]
    close: Callable[[], Awaitable[None]]


class TargetMember:
    """One target; listeners are called when its state may have changed. `source` is our name in the target.

    `kubelet` is where the kubelet API of its virtual node is served.
    """

    def __init__(self, target: Target, *, kubelet: Endpoint, source: str, source_id: str, clock: clock.Clock) -> None:
        self.target, self._kubelet, self._source, self._source_id = target, kubelet, source, source_id
        self.is_leaving = False
        self.changed: listeners.Listeners[Callable[[], None]] = listeners.Listeners()
        self._problem: Problem | None = NOT_CONNECTED
        self._connection: _Connection | None = None
        self._summary = SummaryReader(self._read, self._notify, clock=clock)
        self._until, self._clock = clock.now() + FIRST_SYNC, clock
        self._timer: asyncio.TimerHandle | None = None

    @property
    def node(self) -> str:
        """The name of the virtual node, and of the cluster in the registry."""
        return self.target.node

    @property
    def cluster(self) -> Cluster | None:
        """The cluster, while it is connected."""
        return None if self._connection is None else self._connection.cluster

    @property
    def is_starting(self) -> bool:
        """Whether it may still be on its way to its first summary."""
        return self._problem is None and not self._summary.version and self._clock.now() < self._until

    def link(self) -> TargetLink:
        """The settings of the link to it."""
        return TargetLink(
            target=self.target.key.name,
            node=self.node,
            namespace=self.target.key.namespace,
            source=self._source,
            source_id=self._source_id,
            is_self=self.target.is_self,
            is_leaving=self.is_leaving,
        )

    def update(self, target: Target) -> None:
        """Use a newer version of the Target."""
        if target.object.version != self.target.object.version:
            self.target = target
            self._summary_changed(NAME)

    async def connect(self, cluster: Cluster, close: Callable[[], Awaitable[None]]) -> None:
        """Use this cluster; `close` is called when it is disconnected."""
        store = cluster.informers.acquire(SUMMARIES)
        self._problem, self._until = None, self._clock.now() + FIRST_SYNC
        self._timer = asyncio.get_running_loop().call_later(FIRST_SYNC, self._notify)
        self._connection = _Connection(cluster, store, (), close)
        self._connection.ends = (
            cluster.health.listen(self._notify),
            store.listen(self._summary_changed, lambda summary: (summary.key,)),
            store.freshness.listen(lambda _: self._notify()),
        )
        self._notify()

    async def disconnect(self) -> None:
        """Stop watching the cluster."""
        self._summary.close()
        if self._timer is not None:
            self._timer.cancel()
        if (connection := self._connection) is None:
            return
        self._connection = None
        for end in connection.ends:
            end()
        await connection.close()

    def set_problem(self, problem: Problem | None) -> None:
        """Set why the target can't be used although it may be reachable, such as a missing Secret."""
        if problem != self._problem:
            self._problem = problem
            self._notify()

    def leave(self) -> None:
        """Place nothing there any more: the Target is being deleted."""
        if not self.is_leaving:
            self.is_leaving = True
            self._notify()

    @property
    def problem(self) -> Problem | None:
        """Why nothing can be placed there; None if pods can."""
        if self.is_leaving:
            return Problem(LEAVING, f"{self.link()} is being deleted")
        if self._problem is not None or self._connection is None:
            return self._problem or NOT_CONNECTED
        if error := self._connection.cluster.health.error:
            return Problem(UNREACHABLE, error)
        return self._summary_problem(self._connection.store)

    def view(self) -> TargetView:
        """What the binder sees."""
        problem = self.problem
        text = "" if problem is None else problem.message
        scheduling = dataclasses.replace(self._summary.summary.scheduling, cluster=self.node, closed=text)
        return TargetView(self.link(), scheduling, text, self._summary.version)

    def state(self) -> LowerState | None:
        """What the virtual node reports; None while the target is starting."""
        if self.is_starting:
            return None
        summary = self._summary.summary
        return LowerState(self.settings, summary.totals, summary.nodes, summary.version, self.problem)

    @property
    def settings(self) -> NodeSettings:
        """The settings of the virtual node."""
        key = self.target.key
        if key.namespace:
            identity = {keys.TARGET_NAMESPACE: key.namespace, keys.TARGET_NAME: api.hashed(key.name, key.name)}
        else:
            identity = {keys.CLUSTER_TARGET_NAME: api.hashed(key.name, key.name)}
        address, port = self._kubelet
        return NodeSettings(self.node, self.node, labels=LABELS | identity, taint=TAINT, internal_ip=address, port=port)

    def close(self) -> None:
        """Part of the interface of a monitor; the target controller disconnects it."""

    def _summary_problem(self, store: Store) -> Problem | None:
        if not store.freshness.is_known:
            return Problem(NO_SUMMARY, f"cannot read its ClusterSummary: {store.freshness.error}")
        if not self._summary.version:
            return Problem(NO_SUMMARY, "it has no ClusterSummary: run hansa agent there, too")
        return Problem(BAD_SUMMARY, summary.problem) if (summary := self._summary.summary).problem else None

    def _summary_changed(self, key: NamespacedName) -> None:
        self._summary.offer(None if self._connection is None else self._connection.store.get(key))

    def _read(self, summary: Object) -> TargetSummary:
        return summaries.read(self.node, summary, self.target.is_excluded)

    def _notify(self) -> None:
        for notify in self.changed:
            notify()


LABELS: Final = {
    keys.PROVIDER_TAINT: PROVIDER,
    "kubernetes.io/role": "cluster",
    "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
    "node.kubernetes.io/exclude-from-external-load-balancers": "true",
}
TAINT: Final = Taint(keys.PROVIDER_TAINT, PROVIDER, Effect.NO_SCHEDULE)
