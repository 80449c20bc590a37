"""Forecasts for a federation: proxy pods follow taints of their virtual node, successors are placed by the binder."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hansa.federation.binding import proxy
from hansa.federation.binding.world import Federation, TargetState
from hansa.kube.objects import Object
from hansa.model import keys, requests
from hansa.scheduling import placed_pods
from hansa.scheduling.explaining import Candidate
from hansa.scheduling.forecasting import choosing, leaving, made_nodes
from hansa.scheduling.forecasting.changes import AddNode, Change, Drain, InvalidChange, Lose
from hansa.scheduling.forecasting.forecast import Choice, Departure, SliceChange, Subject, age
from hansa.scheduling.forecasting.virtual_node_world import LOST


@dataclass(frozen=True, slots=True)
class FederationWorld:
    """The source and its targets, and what was changed in them."""

    clusters: Federation
    lost: frozenset[str] = frozenset()
    drained: frozenset[tuple[str, str]] = frozenset()
    added: Mapping[str, int] = field(default_factory=dict)

    def subjects(self) -> list[Subject]:
        """The proxy pods."""
        pods = (pod for pod in self.clusters.source.pods.values() if keys.SOURCE_POD in pod.annotations)
        living = (pod for pod in pods if not pod.is_deleting and not requests.is_finished(pod))
        return [self._subject(pod) for pod in sorted(living, key=age)]

    def unknown(self) -> Mapping[str, str]:
        """The targets that cannot be read."""
        return {one.name: one.unknown for one in self.clusters.targets.values() if one.unknown}

    def changed(self, change: Change) -> "FederationWorld":
        """The world with a change."""
        match change:
            case Lose():
                return replace(self, lost=self.lost | {self._target(change.cluster).name})
            case AddNode():
                target = self._target(change.cluster, is_read=True)
                number = self.added.get(target.name, 0) + 1
                view = target.view.with_node(made_nodes.added(f"new-node-{number}", change.amounts))
                clusters = self.clusters.with_target(replace(target, view=view))
                return replace(self, clusters=clusters, added={**self.added, target.name: number})
            case Drain():
                target = self._target(change.cluster, is_read=True)
                node = target.view.node(change.node)
                if node is None:
                    raise InvalidChange(f"target {target.name} has no node {change.node} in its ClusterSummary")
                view = target.view.without_node(change.node)
                clusters = self.clusters.with_target(replace(target, view=view))
                return replace(self, clusters=clusters, drained=self.drained | {(target.name, change.node)})
            case _:
                raise InvalidChange("--quota is for namespaces in a pool; a federation has no slices")

    def departure(self, subject: Subject) -> Departure | None:
        """Why a proxy pod leaves its target. One without a node is placed elsewhere by the binder."""
        if subject.cluster in self.lost:
            node = subject.pod.spec.get("nodeName", "")
            return leaving.from_lost_node(subject, node) if node else Departure(f"{subject.cluster} is lost")
        if (subject.cluster, subject.node) in self.drained:
            return leaving.from_drained_node(subject)
        return None

    def choose(self, subject: Subject) -> Choice:
        """The target and its node, as if the pod was created again."""
        pod = _unplaced(subject.pod)
        choice = choosing.best(self._candidate(one) for one in self.clusters.candidates(pod))
        is_reserved = proxy.request_of(pod).is_reserved
        return choice if choice.cluster or is_reserved else self._any(pod, choice)

    def having(self, subject: Subject, choice: Choice) -> "FederationWorld":
        """The world with a delegate on a node."""
        target = self.clusters.targets[choice.virtual_node]
        placed = placed_pods.of_request(proxy.request_of(subject.pod).delegate, choice.node)
        view = target.view.with_placed_pod(subject.pod.key, placed)
        return replace(self, clusters=self.clusters.with_target(replace(target, view=view)))

    def without(self, subject: Subject) -> "FederationWorld":
        """The world without a proxy pod and its delegate."""
        return replace(self, clusters=self.clusters.without_pod(subject.pod))

    def slice_changes(self, before: "FederationWorld") -> list[SliceChange]:
        """A federation has no slices."""
        return []

    def _any(self, pod: Object, refused: Choice) -> Choice:
        """A pod without a reservation goes to any target whose virtual node it matches."""
        for one in map(self._candidate, self.clusters.candidates(pod)):
            if not (one.unknown or one.view.closed or (one.gate is not None and one.gate.reasons())):
                return Choice(one.view.cluster, "", one.node)
        return refused

    def _subject(self, pod: Object) -> Subject:
        delegate = self.clusters.copy_of(pod)
        node = "" if delegate is None else delegate.spec.get("nodeName", "")
        if delegate is None and pod.spec.get("nodeName"):
            node = "unknown"  # its target cannot be read
        return Subject(pod.key, pod, self.clusters.cluster_of(pod), node)

    def _candidate(self, one: Candidate) -> Candidate:
        is_lost = one.view.cluster in self.lost
        return replace(one, view=one.view.with_cluster({}, closed=LOST), unknown="") if is_lost else one

    def _target(self, name: str, *, is_read: bool = False) -> TargetState:
        """The target of this name, or of this virtual node; the namespace may be left out if it is unique."""
        targets = self.clusters.targets.values()
        found = [one for one in targets if name in (one.name, one.link.node)]
        found = found or [one for one in targets if one.link.target == name]
        if len(found) != 1:
            known = ", ".join(sorted(one.name for one in targets)) or "none"
            raise InvalidChange(f"there is {'more than one' if found else 'no'} target {name}; known: {known}")
        if is_read and found[0].unknown:
            raise InvalidChange(f"target {name} cannot be read: {found[0].unknown}")
        return found[0]


def _unplaced(pod: Object) -> Object:
    """The proxy pod as the webhook makes it of its successor."""
    annotations = {name: text for name, text in pod.annotations.items() if name != keys.CANDIDATE}
    spec = {name: value for name, value in pod.spec.items() if name != "nodeName"}
    return pod.with_metadata(annotations=annotations).with_fields(spec=spec)
