"""The virtual nodes of a source cluster for the binder: their labels, taints and state, and the proxy pods on them.

Only proxy pods with constraints on other pods, such as a spread over targets, need the pods.
"""

from collections.abc import Iterable

from hansa.federation.binding.proxy import ProxyRequest
from hansa.kube.objects import Object
from hansa.model import keys, placement, requests
from hansa.scheduling import placed_pods, pod_affinity_terms
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.placed_pods import PlacedPod


class VirtualNodes:
    """The virtual nodes, as a view for filters."""

    def __init__(self) -> None:
        self._view = ClusterView("virtual nodes")

    def update(self, name: str, node: Object | None) -> bool:
        """A node changed or is gone. Returns whether the change matters."""
        before = self._view
        self._view = before.without_node(name) if node is None else before.with_node(node)
        return self._view is not before

    def view(self, request: ProxyRequest, pods: Iterable[Object]) -> ClusterView:
        """The view for one proxy pod. `pods` are read only if it has constraints on pods."""
        if request.proxy.pod_constraints == pod_affinity_terms.NONE:
            return self._view
        view = self._view
        for pod in pods:
            node = placement.node_of(pod) or pod.annotations.get(keys.CANDIDATE, "")
            if node and view.node(node) and pod.uid != request.uid and not requests.is_finished(pod):
                labels = placed_pods.labels_of(pod.labels)
                view = view.with_placed_pod(pod.key, PlacedPod(node, {}, pod.namespace, labels))
        return view
