"""An upper cluster and the clusters behind its virtual nodes, as the multi-scheduler decides. Pure and immutable."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.scheduling import explaining, pod_request, snapshot
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.explaining import Answer, Candidate, Gate
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.snapshot import Snapshot

ORDINARY = "ordinary nodes"  # those of the upper cluster itself, as a candidate of its own


@dataclass(frozen=True, slots=True)
class VirtualNodes:
    """`lower_of` gives the cluster of a virtual node, `request_of` the request of a pod's copy behind it."""

    upper: Snapshot
    lowers: Mapping[str, Snapshot]
    lower_of: Callable[[Object], str]
    request_of: Callable[[Object, Object], PodRequest]

    @property
    def nodes(self) -> dict[str, Object]:
        """The virtual nodes, also of clusters that are not configured."""
        return {name: node for name, node in self.upper.nodes.items() if self._is_virtual(node)}

    def lower(self, node: Object) -> Snapshot:
        """The cluster of a virtual node; unknown if it is not configured."""
        name = self.lower_of(node)
        return self.lowers.get(name) or snapshot.unread(name, "it is not in --config")

    def cluster_of(self, pod: Object) -> str:
        """Where a pod is: the cluster of its virtual node, or the upper cluster's own nodes; empty if unbound."""
        name = pod.spec.get("nodeName", "")
        node = self.nodes.get(name)
        return (ORDINARY if name else "") if node is None else self.lower_of(node)

    def copy_of(self, pod: Object) -> Object | None:
        """The copy of a pod in its cluster, which has its name there."""
        lower = self.lowers.get(self.cluster_of(pod))
        return None if lower is None else lower.pods.get(pod.key)

    def answers(self, pod: Object) -> list[Answer]:
        """What each virtual node, and the ordinary nodes, say about a pod, as if it was not there."""
        return explaining.answers(self.candidates(pod))

    def candidates(self, pod: Object, *, is_counting: bool = True) -> Iterator[Candidate]:
        """Where a pod may run. `is_counting` is whether the sums of virtual nodes count, too."""
        above, outside = pod_request.of_pod(pod), self.upper.view.without_pod(pod.key)
        bound = pod.spec.get("nodeName", "")
        for name, node in sorted(self.nodes.items()):
            lower = self.lower(node)
            request = above if is_counting else replace(above, amounts={})
            gate = None if bound == name else Gate(name, request, outside)  # a bound pod is past it
            view = replace(lower.view, cluster=lower.name).without_pod(pod.key)
            yield Candidate(name, self.request_of(pod, node), view, gate, lower.unknown)
        if (ordinary := self._ordinary(outside)) is not None:
            yield Candidate("", above, ordinary, unknown=self.upper.unknown)

    def with_lower(self, lower: Snapshot) -> "VirtualNodes":
        """The same with one cluster replaced."""
        return replace(self, lowers={**self.lowers, lower.name: lower})

    def _is_virtual(self, node: Object) -> bool:
        is_target = node.labels.get(keys.PROVIDER_TAINT) == "admiralty"  # of the federation
        is_ours = node.labels.get(keys.VIRTUAL_NODE) == "true" and keys.TENANT_NODE not in node.labels
        return self.lower_of(node) in self.lowers or (is_ours and not is_target)

    def _ordinary(self, view: ClusterView) -> ClusterView | None:
        """The nodes that are not virtual; None if there are none."""
        for name in self.nodes:
            view = view.without_node(name)
        return replace(view, cluster=ORDINARY) if view.groups else None
