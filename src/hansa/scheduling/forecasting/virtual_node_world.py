"""Forecasts for virtual nodes: pods follow taints of their node, successors are placed by the multi-scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hansa.kube.objects import Object
from hansa.model import requests
from hansa.scheduling import placed_pods, pod_request
from hansa.scheduling.explaining import Candidate
from hansa.scheduling.forecasting import choosing, leaving, made_nodes
from hansa.scheduling.forecasting.changes import AddNode, Change, Drain, InvalidChange, Lose
from hansa.scheduling.forecasting.forecast import Choice, Departure, SliceChange, Subject, age
from hansa.scheduling.forecasting.virtual_nodes import ORDINARY, VirtualNodes
from hansa.scheduling.snapshot import Snapshot

LOST = "it is lost"


@dataclass(frozen=True, slots=True)
class VirtualNodeWorld:
    """The clusters, and what was changed in them."""

    clusters: VirtualNodes
    lost: frozenset[str] = frozenset()
    drained: frozenset[tuple[str, str]] = frozenset()
    added: Mapping[str, int] = field(default_factory=dict)  # the number of nodes by cluster

    def subjects(self) -> list[Subject]:
        """The pods on virtual nodes, and those that are pending above."""
        pods = sorted(self.clusters.upper.pods.values(), key=age)
        found = (self._subject(pod) for pod in pods if not pod.is_deleting and not requests.is_finished(pod))
        return [one for one in found if one.cluster != ORDINARY]

    def unknown(self) -> Mapping[str, str]:
        """The lower clusters that cannot be read."""
        lowers = {one.name: one for one in map(self.clusters.lower, self.clusters.nodes.values())}
        return {name: one.unknown for name, one in lowers.items() if one.unknown}

    def changed(self, change: Change) -> "VirtualNodeWorld":
        """The world with a change."""
        match change:
            case Lose():
                self._lower(change.cluster)
                return replace(self, lost=self.lost | {change.cluster})
            case AddNode():
                lower, number = self._lower(change.cluster, is_read=True), self.added.get(change.cluster, 0) + 1
                node = made_nodes.added(f"new-node-{number}", change.amounts)
                changed = self.clusters.with_lower(lower.with_node(node))
                return replace(self, clusters=changed, added={**self.added, change.cluster: number})
            case Drain():
                lower = self._lower(change.cluster, is_read=True)
                if change.node not in lower.nodes:
                    raise InvalidChange(f"cluster {change.cluster} has no node {change.node}")
                ours = frozenset(self.clusters.upper.pods)
                changed = self.clusters.with_lower(leaving.drained(lower, change.node, ours))
                return replace(self, clusters=changed, drained=self.drained | {(change.cluster, change.node)})
            case _:
                raise InvalidChange("--quota is for namespaces in a pool; virtual nodes have no slices")

    def departure(self, subject: Subject) -> Departure | None:
        """Why a pod leaves its virtual node."""
        if subject.cluster in self.lost:
            return leaving.from_lost_node(subject, subject.pod.spec.get("nodeName", ""))
        if (subject.cluster, subject.node) in self.drained:
            return leaving.from_drained_node(subject)
        return None

    def choose(self, subject: Subject) -> Choice:
        """The virtual node and the node below. A pod that is bound and has no node below stays bound."""
        bound = subject.pod.spec.get("nodeName", "")
        is_bound = bool(bound) and not subject.is_running and subject.cluster not in self.lost
        pod = subject.pod if is_bound else _unbound(subject.pod)
        every = self.clusters.candidates(pod, is_counting=False)
        return choosing.best(self._candidate(one) for one in every if not is_bound or one.node == bound)

    def having(self, subject: Subject, choice: Choice) -> "VirtualNodeWorld":
        """The world with a pod on a node."""
        clusters, pod, upper = self.clusters, subject.pod, self.clusters.upper
        if choice.cluster == ORDINARY:
            placed = placed_pods.of_request(pod_request.of_pod(pod), choice.node)
            return replace(self, clusters=replace(clusters, upper=_with(upper, pod, placed)))
        node, lower = upper.nodes[choice.virtual_node], clusters.lowers[choice.cluster]
        above = placed_pods.of_request(pod_request.of_pod(pod), choice.virtual_node)
        below = placed_pods.of_request(clusters.request_of(_unbound(pod), node), choice.node)
        changed = replace(clusters, upper=_with(upper, pod, above)).with_lower(_with(lower, pod, below))
        return replace(self, clusters=changed)

    def without(self, subject: Subject) -> "VirtualNodeWorld":
        """The world without a pod and its copy."""
        key, clusters = subject.pod.key, self.clusters
        clusters = replace(clusters, upper=clusters.upper.without_pod(key))
        lower = clusters.lowers.get(subject.cluster)
        return replace(self, clusters=clusters if lower is None else clusters.with_lower(lower.without_pod(key)))

    def slice_changes(self, before: "VirtualNodeWorld") -> list[SliceChange]:
        """Virtual nodes have no slices."""
        return []

    def _subject(self, pod: Object) -> Subject:
        cluster, copy = self.clusters.cluster_of(pod), self.clusters.copy_of(pod)
        node = "" if copy is None else copy.spec.get("nodeName", "")
        if copy is None and cluster and pod.status.get("phase") == "Running":
            node = "unknown"  # its cluster cannot be read
        return Subject(pod.key, pod, cluster, node)

    def _candidate(self, one: Candidate) -> Candidate:
        is_lost = one.view.cluster in self.lost
        return replace(one, view=one.view.with_cluster({}, closed=LOST), unknown="") if is_lost else one

    def _lower(self, name: str, *, is_read: bool = False) -> Snapshot:
        known = {one.name: one for one in map(self.clusters.lower, self.clusters.nodes.values())}
        return checked(name, known, is_read=is_read)


def checked(name: str, known: Mapping[str, Snapshot], *, is_read: bool) -> Snapshot:
    """A cluster that a change names; raises InvalidChange if there is none, or if it has to be read and can't be."""
    if name not in known:
        raise InvalidChange(f"there is no cluster {name}; known: {', '.join(sorted(known)) or 'none'}")
    if is_read and known[name].unknown:
        raise InvalidChange(f"cluster {name} cannot be read: {known[name].unknown}")
    return known[name]


def _unbound(pod: Object) -> Object:
    """The pod as its controller creates it again."""
    return pod.with_fields(spec={name: value for name, value in pod.spec.items() if name != "nodeName"})


def _with(cluster: Snapshot, pod: Object, placed: placed_pods.PlacedPod) -> Snapshot:
    return replace(cluster, view=cluster.view.with_placed_pod(pod.key, placed))
