"""Scores of nodes that passed the filters, each from 0 to 100, named as in kube-scheduler."""

from hansa.kube.language import tolerations
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.pod_request import PodRequest

MOST = 100
_SOFT = frozenset({tolerations.Effect.PREFER_NO_SCHEDULE})


def least_allocated(request: PodRequest, _view: ClusterView, node: Node) -> int:
    """The share of the node that stays free, of the scarcest requested resource."""
    shares = (
        (node.free[name] - nano) * MOST // node.allocatable[name] for name, nano in request.amounts.items() if nano > 0
    )
    return min(shares, default=MOST)


def most_allocated(request: PodRequest, view: ClusterView, node: Node) -> int:
    """The share of the node that is used, to keep other nodes empty."""
    return MOST - least_allocated(request, view, node)


def node_affinity(request: PodRequest, _view: ClusterView, node: Node) -> int:
    """The weight of preferred node affinity terms that match, as a share of the total weight."""
    whole = sum(one.weight for one in request.affinity.preferred)
    return request.affinity.score(node.name, node.labels()) * MOST // whole if whole > 0 else 0


def taint_toleration(request: PodRequest, _view: ClusterView, node: Node) -> int:
    """100 if the pod tolerates all PreferNoSchedule taints of the node, else 0."""
    return 0 if tolerations.untolerated(node.shape.taints, request.tolerations, effects=_SOFT) else MOST
