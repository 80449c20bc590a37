"""Forecasts for a pool: slices are planned again, and pods are evicted and assigned as by vc-scheduler. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.model.placement import node_of
from hansa.scheduling import placed_pods
from hansa.scheduling.forecasting import leaving, made_nodes
from hansa.scheduling.forecasting.changes import AddNode, Change, Drain, InvalidChange, Lose, Quota
from hansa.scheduling.forecasting.forecast import Choice, Departure, Fate, SliceChange, Subject, age
from hansa.scheduling.forecasting.pool import PoolWorld, Space, SuperCluster
from hansa.scheduling.slicing import annotations
from hansa.scheduling.slicing.planning import SlicePlan
from hansa.scheduling.slicing.pool import State
from hansa.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PoolForecast:
    """The pool, and what was changed in it. `names` are of tenants, by key, for people."""

    pool: PoolWorld
    names: Mapping[str, str]
    drained: frozenset[tuple[str, str]] = frozenset()
    added: Mapping[str, int] = field(default_factory=dict)
    plans: Mapping[str, SlicePlan] = field(default_factory=dict)  # of the last change

    def subjects(self) -> list[Subject]:
        """The pods of tenants."""
        found = []
        for key, pod in sorted(self.pool.pods.items(), key=lambda one: (age(one[1]), one[0])):
            if not pod.is_deleting and not requests.is_finished(pod):
                shown = NamespacedName(self.shown(key.namespace), key.name)
                found.append(Subject(shown, pod, annotations.cluster_of(pod), self._node(key, pod), key.namespace))
        return found

    def unknown(self) -> Mapping[str, str]:
        """The super clusters that cannot be read."""
        return {name: one.snapshot.unknown for name, one in self.pool.supers.items() if one.snapshot.unknown}

    def shown(self, ref: str) -> str:
        """A namespace for people: with its tenant, if there is more than one."""
        tenant, _, name = ref.partition("/")
        return name if len(self.names) < 2 else f"{self.names.get(tenant, tenant)}/{name}"

    def changed(self, change: Change) -> "PoolForecast":
        """The world with a change, and with the slices that are planned after it."""
        match change:
            case Lose():
                one = self._super(change.cluster)
                lost = replace(one, state=State.LOST, reason="unreachable for good")
                return replace(self, pool=self.pool.with_super(lost))._planned()
            case AddNode():
                one, number = self._super(change.cluster, is_read=True), self.added.get(change.cluster, 0) + 1
                node = made_nodes.added(f"new-node-{number}", change.amounts)
                added = {**self.added, change.cluster: number}
                return replace(self._with(one, one.snapshot.with_node(node)), added=added)._planned()
            case Drain():
                return self._drained(change)._planned()
            case Quota():
                space = self._space(change.namespace)
                spaces = {**self.pool.spaces, space.ref: replace(space, quota=change.amounts)}
                return replace(self, pool=replace(self.pool, spaces=spaces))._planned()

    def departure(self, subject: Subject) -> Departure | None:
        """Why a pod leaves its super cluster."""
        ref, cluster = subject.space, subject.cluster
        one = self.pool.supers.get(cluster)
        is_lost = one is not None and one.state is State.LOST
        if (cluster, subject.node) in self.drained:
            return leaving.from_drained_node(subject)
        if self.pool.is_placed(ref, cluster) and not is_lost:
            return None
        reason = f"{cluster} is lost" if is_lost else f"its namespace has no slices in {cluster}"
        if not subject.is_running or subject.controller:
            return Departure(reason)
        return Departure(f"{reason}; no controller creates it again", Fate.ENDS)

    def choose(self, subject: Subject) -> Choice:
        """The super cluster and its node. A pod that was assigned stays where it is if it fits there."""
        key = _key(subject)
        verdict = self.pool.choose(key, subject.pod)
        stays = [fit for fit in verdict.fits if fit.cluster == subject.cluster and not subject.is_running]
        if best := (stays[0] if stays else verdict.best):
            return Choice(best.cluster, best.node)
        unread = self.unknown()
        unknown = tuple(name for name in self.pool.holding(key.namespace).placements if self._is_open_question(name))
        said = str(verdict) if verdict.refusals else f"namespace {subject.pod.namespace} has no slices"
        return Choice(reason="; ".join((said, *(f"{name}: {unread[name]}" for name in unknown))), unknown=unknown)

    def having(self, subject: Subject, choice: Choice) -> "PoolForecast":
        """The world with a pod on a node."""
        key, one = _key(subject), self.pool.supers[choice.cluster]
        request = self.pool.request(key, subject.pod)
        marked = {**subject.pod.annotations, keys.SUPER_CLUSTER: choice.cluster}
        pod = subject.pod.with_metadata(annotations=marked)
        pod = pod.with_fields(spec={**pod.spec, "nodeName": choice.node})
        copy = NamespacedName(request.namespace, key.name)
        view = one.snapshot.view.without_pod(copy).with_placed_pod(copy, placed_pods.of_request(request, choice.node))
        found = self._with(one, replace(one.snapshot, view=view))
        return replace(found, pool=found.pool.with_pod(key, pod))

    def without(self, subject: Subject) -> "PoolForecast":
        """The world without a pod and its copy."""
        key = _key(subject)
        found = replace(self, pool=self.pool.with_pod(key, None))
        one = self.pool.supers.get(subject.cluster)
        if one is None:
            return found
        copy = NamespacedName(self.pool.request(key, subject.pod).namespace, key.name)
        return found._with(one, one.snapshot.without_pod(copy))

    def slice_changes(self, before: "PoolForecast") -> list[SliceChange]:
        """The namespaces whose slices differ, or are not all placed."""
        found = []
        for ref, plan in sorted(self.plans.items()):
            now, then = before.pool.holding(ref).placements, plan.placements
            reason = "; ".join(filter(None, (str(plan.missing or ""), plan.refused, *plan.notes)))
            if dict(now) != dict(then) or reason:
                found.append(SliceChange(self.shown(ref), now, then, reason))
        return found

    def _planned(self) -> "PoolForecast":
        """The world after all namespaces were planned; twice, since slices that move make room for others."""
        pool, plans = self.pool, dict[str, SlicePlan]()
        for _ in range(2):
            assignments = pool.assignments()
            for ref, space in sorted(pool.spaces.items()):
                plan = plans[ref] = pool.plan(space, assignments=assignments)
                spaces = {**pool.spaces, ref: replace(space, planned=plan.holding, is_settled=True)}
                pool = replace(pool, holdings={**pool.holdings, ref: plan.holding}, spaces=spaces)
        return replace(self, pool=pool, plans=plans)

    def _drained(self, change: Drain) -> "PoolForecast":
        one = self._super(change.cluster, is_read=True)
        if change.node not in one.snapshot.nodes:
            raise InvalidChange(f"cluster {change.cluster} has no node {change.node}")
        ours = frozenset(key for key, pod in one.snapshot.pods.items() if keys.UPPER in pod.labels)
        found = self._with(one, leaving.drained(one.snapshot, change.node, ours))
        return replace(found, drained=self.drained | {(change.cluster, change.node)})

    def _with(self, one: SuperCluster, snapshot: Snapshot) -> "PoolForecast":
        return replace(self, pool=self.pool.with_super(replace(one, snapshot=snapshot)))

    def _node(self, key: NamespacedName, pod: Object) -> str:
        """The node in the super cluster; the tenant's name for it if that cluster cannot be read."""
        if not node_of(pod):
            return ""
        one = self.pool.supers.get(annotations.cluster_of(pod))
        copy = NamespacedName(self.pool.request(key, pod).namespace, pod.name)
        found = None if one is None else one.snapshot.pods.get(copy)
        return node_of(pod) if found is None else node_of(found)

    def _is_open_question(self, cluster: str) -> bool:
        one = self.pool.supers.get(cluster)
        return one is not None and bool(one.snapshot.unknown) and one.state is not State.LOST

    def _super(self, name: str, *, is_read: bool = False) -> SuperCluster:
        if name not in self.pool.supers:
            known = ", ".join(sorted(self.pool.supers)) or "none"
            raise InvalidChange(f"there is no super cluster {name} in the pool; known: {known}")
        one = self.pool.supers[name]
        if is_read and one.snapshot.unknown:
            raise InvalidChange(f"super cluster {name} cannot be read: {one.snapshot.unknown}")
        return one

    def _space(self, name: str) -> Space:
        """The namespace of this name: with namespace/name of its VirtualCluster where the name is not unique."""
        spaces = self.pool.spaces
        found = [one for one in spaces.values() if name in (one.namespace.name, self.shown(one.ref), one.ref)]
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(sorted(self.shown(one.ref) for one in found))
            raise InvalidChange(f"namespace {name} exists in several tenants: use one of {shown}")
        raise InvalidChange(f"no tenant has a namespace {name}")


def _key(subject: Subject) -> NamespacedName:
    """The key of a pod in the pool: the shown one names the tenant for people, or not at all."""
    return NamespacedName(subject.space, subject.key.name)
