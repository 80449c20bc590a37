"""Evaluates a pod against views of clusters: filters, then scores, as kube-scheduler does for nodes. Pure.

Filters run on shapes first; nodes with enough free resources are then found by rank, without a scan of all nodes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from hansa.scheduling import filters, pod_affinity, scores
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.node_group import NodeGroup
from hansa.scheduling.plugins import FilterReason, NodeCheck, Profile
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Closed, Filtered, Fit, Fragmented, Insufficient, Reason, Refusal, Verdict

SPREADING: Final = Profile(
    filters=(
        *(filters.state, filters.taints, filters.labels, filters.host_ports),
        *(pod_affinity.affinity, pod_affinity.anti_affinity, pod_affinity.topology_spread),
    ),
    scores=((1, scores.least_allocated), (1, scores.node_affinity), (1, scores.taint_toleration)),
)
"""The default, as in kube-scheduler: prefers nodes with most free resources."""
PACKING: Final = Profile(
    filters=SPREADING.filters,
    scores=((1, scores.most_allocated), (1, scores.node_affinity), (1, scores.taint_toleration)),
)
"""Prefers nodes with least free resources."""


def verdict(request: PodRequest, views: Iterable[ClusterView], *, profile: Profile = SPREADING) -> Verdict:
    """Evaluate a pod in every cluster."""
    return Verdict.of(evaluate(request, view, profile=profile) for view in views)


def evaluate(request: PodRequest, view: ClusterView, *, profile: Profile = SPREADING) -> Fit | Refusal:
    """Evaluate a pod in one cluster."""
    if view.closed:
        return Refusal(view.cluster, (Closed(view.closed),))
    checks = [check for one in profile.filters if (check := one(request, view)) is not None]
    filtered: Counter[FilterReason] = Counter()
    groups = [group for group in view.groups.values() if not _refused(group, checks, filtered)]
    node_checks = [check.node for check in checks if check.node is not None]
    filtered_nodes: Counter[FilterReason] = Counter()
    found = [node for group in groups if (node := _found(group, request, node_checks, filtered_nodes)) is not None]
    if found:
        best = min((-_score(request, view, node, profile), node.name) for node in found)
        return Fit(view.cluster, best[1], -best[0], request.pod_constraints.unchecked)
    short = _shortages(request, groups) if groups and not filtered_nodes else ()
    return Refusal(view.cluster, (*short, *_filtered(filtered + filtered_nodes)))


def passing(request: PodRequest, view: ClusterView, *, profile: Profile = SPREADING) -> Iterator[Node]:
    """The nodes that pass all filters, whatever is free on them."""
    checks = [check for one in profile.filters if (check := one(request, view)) is not None]
    node_checks = [check.node for check in checks if check.node is not None]
    for group in view.groups.values():
        if not _refused(group, checks, Counter()):
            yield from (node for node in group.nodes.values() if not any(one(node) for one in node_checks))


def refusal_on(
    request: PodRequest, view: ClusterView, name: str, *, profile: Profile = SPREADING
) -> tuple[Reason, ...]:
    """Why a pod does not fit on one node; empty if it does."""
    node = view.node(name)
    if node is None:
        return (Closed(f"node {name} does not exist"),)
    for check in (check for one in profile.filters if (check := one(request, view)) is not None):
        reason = (check.shape(node.shape) if check.shape else "") or (check.node(node) if check.node else "")
        if reason:
            return (Filtered(1, reason),)
    return tuple(
        Insufficient(resource, nano, node.free.get(resource, 0), name)
        for resource, nano in sorted(request.amounts.items())
        if nano > max(0, node.free.get(resource, 0))
    )


def _refused(group: NodeGroup, checks: list[NodeCheck], filtered: Counter[FilterReason]) -> bool:
    for check in checks:
        if check.shape is not None and (reason := check.shape(group.shape)):
            filtered[reason] += len(group.nodes)
            return True
    return False


def _found(
    group: NodeGroup,
    request: PodRequest,
    node_checks: list[Callable[[Node], FilterReason]],
    filtered: Counter[FilterReason],
) -> Node | None:
    for node in group.fitting(request.amounts):
        reason = next((reason for one in node_checks if (reason := one(node))), "")
        if not reason:
            return node
        filtered[reason] += 1
    return None


def _score(request: PodRequest, view: ClusterView, node: Node, profile: Profile) -> int:
    return sum(weight * score(request, view, node) for weight, score in profile.scores)


def _shortages(request: PodRequest, groups: list[NodeGroup]) -> tuple[Reason, ...]:
    """The resources that are insufficient on nodes that passed the filters."""
    requested = {name: nano for name, nano in sorted(request.amounts.items()) if nano > 0}
    heads = {name: min(group.most_free(name) for group in groups) for name in requested}
    short = [
        Insufficient(name, requested[name], -free, node)
        for name, (free, node) in heads.items()
        if -free < requested[name]
    ]
    return tuple(short) or (Fragmented(requested),)


def _filtered(filtered: Counter[FilterReason]) -> tuple[Filtered, ...]:
    ordered = sorted(filtered.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Filtered(nodes, reason) for reason, nodes in ordered)
