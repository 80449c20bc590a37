"""A pool and the namespaces and pods of its tenants, as its schedulers decide. Pure and immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hansa.kube.objects import NamespacedName, Object
from hansa.model import capacity, keys, tenant_names
from hansa.model.placement import node_of
from hansa.model.requests import is_finished
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing import annotations, planning, pod_choice
from hansa.scheduling.slicing.annotations import PoolSettings
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import SlicePlan
from hansa.scheduling.slicing.pod_choice import Assignment, Assignments
from hansa.scheduling.slicing.pool import Headroom, Member, Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest
from hansa.scheduling.snapshot import Snapshot
from hansa.scheduling.verdict import Fit, Verdict

_NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class SuperCluster:
    """A cluster of the pool; `reason` is of a state but OPEN."""

    snapshot: Snapshot
    labels: Mapping[str, str] = field(default_factory=dict)
    headroom: Headroom = field(default_factory=Headroom)
    state: State = State.OPEN
    reason: str = ""

    @property
    def name(self) -> str:
        return self.snapshot.name

    @property
    def view(self) -> ClusterView:
        """The cluster for pods; closed unless it is open."""
        closed = "" if self.state is State.OPEN else self.reason or self.state.value
        return replace(self.snapshot.view, cluster=self.name, labels=self.labels, closed=closed)

    def member(self) -> Member:
        """The cluster for slices."""
        sums = capacity.Capacity(lambda pod: keys.UPPER in pod.labels)
        for node in self.snapshot.nodes.values():
            sums.node(node.name, node)
        for key, pod in self.snapshot.pods.items():
            sums.pod(key, pod)
        return Member(self.name, sums.totals().allocatable, self.labels, self.state, self.reason, self.headroom)


@dataclass(frozen=True, slots=True)
class Space:
    """A namespace of a tenant, with its quotas and its last plan."""

    tenant: str  # its key
    namespace: Object
    quotas: tuple[Object, ...] = ()
    planned: Holding | None = None
    is_recorded: bool = True
    quota: Mapping[str, int] | None = None  # of a forecast, instead of the quotas
    is_settled: bool = False  # its annotation shows the last plan, which is one of a forecast

    @property
    def ref(self) -> str:
        return f"{self.tenant}/{self.namespace.name}"


@dataclass(frozen=True, slots=True)
class PoolWorld:
    """The pool. Pods are named by the ref of their namespace and their name; `holdings` are of all namespaces.

    What follows from the pods is kept with them: a forecast changes one pod after the other, of thousands.
    """

    supers: Mapping[str, SuperCluster]
    spaces: Mapping[str, Space]
    pods: PersistentMap[NamespacedName, Object]
    holdings: Mapping[str, Holding]
    settings: PoolSettings = field(default_factory=PoolSettings)
    unsliced: frozenset[str] = frozenset()  # namespaces whose pods may be wherever another one of the tenant is placed
    _assignments: Assignments | None = None
    _coming: frozenset[NamespacedName] | None = None  # the pods that are assigned and have no node yet

    def __post_init__(self) -> None:
        if self._assignments is None:
            assignments = Assignments()
            for key, pod in self.pods.items():
                assignments = assignments.with_assignment(key, _assignment(pod))
            object.__setattr__(self, "_assignments", assignments)
            object.__setattr__(self, "_coming", frozenset(key for key, pod in self.pods.items() if _is_coming(pod)))

    def holding(self, ref: str) -> Holding:
        """The slices of a namespace."""
        return self.holdings.get(ref) or Holding()

    def is_placed(self, ref: str, cluster: str) -> bool:
        """Whether pods of a namespace may be in a cluster."""
        tenant, _, name = ref.rpartition("/")
        refs = [one for one in self.holdings if one.startswith(f"{tenant}/")] if name in self.unsliced else []
        return any(cluster in self.holding(one).placements for one in (ref, *refs))

    def pool(self) -> Pool:
        """Members and holdings for planning."""
        absent = {name for holding in self.holdings.values() for name in holding.placements} - self.supers.keys()
        members = {name: Member(name, {}, state=State.CLOSED, reason="not joined") for name in absent}
        found = Pool().with_members(members | {name: one.member() for name, one in self.supers.items()})
        for ref, holding in self.holdings.items():
            found = found.with_holding(ref, holding)
        return found

    def assignments(self, *, besides: NamespacedName | None = None) -> Assignments:
        """What pods use in each cluster, by their annotations."""
        assert self._assignments is not None  # __post_init__
        return self._assignments if besides is None else self._assignments.with_assignment(besides, None)

    def with_pod(self, key: NamespacedName, pod: Object | None) -> "PoolWorld":
        """The same with a pod added, replaced or removed (None)."""
        assert self._assignments is not None  # __post_init__
        assert self._coming is not None
        is_coming = pod is not None and _is_coming(pod)
        coming = self._coming | {key} if is_coming else self._coming - {key} if key in self._coming else self._coming
        pods = self.pods.without(key) if pod is None else self.pods.having(key, pod)
        assigned = self._assignments.with_assignment(key, None if pod is None else _assignment(pod))
        return replace(self, pods=pods, _assignments=assigned, _coming=coming)

    def slice_request(self, space: Space, assignments: Assignments) -> SliceRequest:
        """What a namespace asks for; raises AnnotationError."""
        request, _ = annotations.slice_request(
            space.ref,
            space.namespace,
            space.quotas,
            used=assignments.used(space.ref),
            planned=space.planned,
            is_recorded=space.is_recorded,
            settings=self.settings,
        )
        if space.is_settled and space.planned is not None:
            request = replace(request, annotated=space.planned.placements)
        return request if space.quota is None else replace(request, quota=space.quota)

    def plan(self, space: Space, *, pool: Pool | None = None, assignments: Assignments | None = None) -> SlicePlan:
        """The slices that a namespace would get now."""
        request = self.slice_request(space, assignments or self.assignments())
        return planning.plan(request, pool or self.pool())

    def request(self, key: NamespacedName, pod: Object) -> PodRequest:
        """The request of a pod's copy."""
        tenant = key.namespace.rpartition("/")[0]
        return pod_request.of_pod(pod, lambda namespace: tenant_names.super_namespace(tenant, namespace))

    def choose(self, key: NamespacedName, pod: Object) -> Verdict:
        """The verdict of the pod scheduler, as if the pod was nowhere."""
        request = self.request(key, pod)
        used = self.assignments(besides=key).used(key.namespace)
        return pod_choice.choose(request, self.holding(key.namespace), used=used, views=self.views(key, request))

    def views(self, key: NamespacedName, request: PodRequest) -> dict[str, ClusterView]:
        """What is left in each cluster besides a pod: less what pods need that are assigned and have no node yet."""
        copy = NamespacedName(request.namespace, key.name)
        found = {name: one.view.without_pod(copy) for name, one in self.supers.items() if not one.snapshot.unknown}
        for other in sorted(self._coming or ()):
            pod = self.pods.get(other)
            view = None if pod is None else found.get(annotations.cluster_of(pod))
            if pod is None or view is None or view.closed or other == key:
                continue
            wanted = self.request(other, pod)
            name = NamespacedName(wanted.namespace, other.name)
            if name not in view.pods and isinstance(fit := evaluation.evaluate(wanted, view), Fit):
                found[view.cluster] = view.reserving(name, wanted, node=fit.node, until=_NEVER)
        return found

    def with_super(self, changed: SuperCluster) -> "PoolWorld":
        """The same with one cluster replaced."""
        return replace(self, supers={**self.supers, changed.name: changed})


def _assignment(pod: Object) -> Assignment | None:
    return pod_choice.assignment_of(pod, annotations.cluster_of(pod))


def _is_coming(pod: Object) -> bool:
    return bool(annotations.cluster_of(pod)) and not node_of(pod) and not is_finished(pod)
