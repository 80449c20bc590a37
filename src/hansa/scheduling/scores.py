"""Scores: what makes one node that fits better than another, each from 0 to 100."""

from hansa.kube.language import tolerations
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.pod_request import PodRequest

MOST = 100
_SOFT = frozenset({tolerations.Effect.PREFER_NO_SCHEDULE})


def room(ask: PodRequest, _view: ClusterView, node: Node) -> int:
    """How much of the node stays free: of what was asked for, the scarcest counts."""
    shares = (
        (node.free[name] - nano) * MOST // node.allocatable[name] for name, nano in ask.amounts.items() if nano > 0
    )
    return min(shares, default=MOST)


def fullness(ask: PodRequest, view: ClusterView, node: Node) -> int:
    """How little stays free, to keep other nodes empty."""
    return MOST - room(ask, view, node)


def preference(ask: PodRequest, _view: ClusterView, node: Node) -> int:
    """What the pod likes about the node's labels, as a share of all that it would like."""
    whole = sum(one.weight for one in ask.affinity.preferred)
    return ask.affinity.score(node.name, node.labels()) * MOST // whole if whole > 0 else 0


def welcome(ask: PodRequest, _view: ClusterView, node: Node) -> int:
    """Whether the node has no taint that would rather keep the pod away."""
    return 0 if tolerations.untolerated(node.shape.taints, ask.tolerations, effects=_SOFT) else MOST
