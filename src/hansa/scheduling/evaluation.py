"""The judge: a pod and views in, a verdict out. Pure: the same view and pod give the same verdict, always.
Shapes are sieved first, then a node with room is looked up by rank; there is no walk over nodes that cannot fit.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from hansa.scheduling import filters, pod_affinity, scores
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.node_group import NodeGroup
from hansa.scheduling.plugins import Profile, Sieve, Why
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Against, Closed, Fit, Reason, Refusal, Scattered, Shortage, Verdict

SPREADING: Final = Profile(
    filters=(filters.state, filters.taints, filters.labels, pod_affinity.near, pod_affinity.apart, pod_affinity.spread),
    scores=((1, scores.room), (1, scores.preference), (1, scores.welcome)),
)
"""As a stock scheduler would: where most stays free."""
PACKING: Final = Profile(
    filters=SPREADING.filters, scores=((1, scores.fullness), (1, scores.preference), (1, scores.welcome))
)
"""Fill what is in use already."""


def verdict(ask: PodRequest, views: Iterable[ClusterView], *, profile: Profile = SPREADING) -> Verdict:
    """Ask every cluster."""
    answers = [evaluate(ask, view, profile=profile) for view in views]
    return Verdict(
        tuple(sorted((one for one in answers if isinstance(one, Fit)), key=lambda fit: (-fit.score, fit.cluster))),
        tuple(sorted((one for one in answers if isinstance(one, Refusal)), key=lambda one: one.cluster)),
    )


def evaluate(ask: PodRequest, view: ClusterView, *, profile: Profile = SPREADING) -> Fit | Refusal:
    """Ask one cluster."""
    if view.closed:
        return Refusal(view.cluster, (Closed(view.closed),))
    sieves = [sieve for one in profile.filters if (sieve := one(ask, view)) is not None]
    against: Counter[Why] = Counter()
    groups = [group for group in view.groups.values() if not _refused(group, sieves, against)]
    whys = [sieve.node for sieve in sieves if sieve.node is not None]
    roomy: Counter[Why] = Counter()
    found = [node for group in groups if (node := _found(group, ask, whys, roomy)) is not None]
    if found:
        best = min((-_score(ask, view, node, profile), node.name) for node in found)
        return Fit(view.cluster, best[1], -best[0], ask.relations.left)
    short = _shortages(ask, groups) if groups and not roomy else ()
    return Refusal(view.cluster, (*short, *_told(against + roomy)))


def _refused(group: NodeGroup, sieves: list[Sieve], against: Counter[Why]) -> bool:
    for sieve in sieves:
        if sieve.shape is not None and (why := sieve.shape(group.shape)):
            against[why] += len(group.nodes)
            return True
    return False


def _found(group: NodeGroup, ask: PodRequest, whys: list[Callable[[Node], Why]], against: Counter[Why]) -> Node | None:
    for node in group.fitting(ask.amounts):
        why = next((why for one in whys if (why := one(node))), "")
        if not why:
            return node
        against[why] += 1
    return None


def _score(ask: PodRequest, view: ClusterView, node: Node, profile: Profile) -> int:
    return sum(weight * score(ask, view, node) for weight, score in profile.scores)


def _shortages(ask: PodRequest, groups: list[NodeGroup]) -> tuple[Reason, ...]:
    """What is missing on nodes that are out of the question for no other reason."""
    asked = {name: nano for name, nano in sorted(ask.amounts.items()) if nano > 0}
    heads = {name: min(group.roomiest(name) for group in groups) for name in asked}
    short = [Shortage(name, asked[name], -free, node) for name, (free, node) in heads.items() if -free < asked[name]]
    return tuple(short) or (Scattered(asked),)


def _told(against: Counter[Why]) -> tuple[Against, ...]:
    ordered = sorted(against.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Against(nodes, why) for why, nodes in ordered)
