"""Moves reservations of a node that no longer has room for them to nodes that have. Pure.

A cluster's own scheduler may bind a pod to another node than the one where it has a reservation, so that another
reservation there is short of room while the first one's node looks free.
"""

from hansa.scheduling import evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.verdict import Fit


def resettled(view: ClusterView, name: str) -> ClusterView:
    """The view after reservations have left a node, if it is overcommitted or gone. One that fits nowhere stays."""
    if _has_room(view, name):
        return view
    for key, one in list(view.reservations.items()):
        if one.placed.node == name:
            without = view.without_pod(key)
            result = evaluation.evaluate(one.request, without.with_cluster(view.labels))
            if isinstance(result, Fit):
                view = without.reserving(key, one.request, node=result.node, until=one.until)
            if _has_room(view, name):
                break
    return view


def _has_room(view: ClusterView, name: str) -> bool:
    node = view.node(name)
    return node is not None and all(free >= 0 for free in node.free.values())
