"""What would make a pod fit in a cluster: the fewest changes of the pod, and what is missing on the best node. Pure.

Used to explain a refusal. The answer has the changed request, which fits, so that it can be checked.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from hansa.kube.language import tolerations
from hansa.kube.language.affinity import NodeAffinity
from hansa.kube.language.tolerations import Taint, Toleration
from hansa.scheduling import evaluation, filters, pod_affinity_terms
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import amount_text


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes of a pod, and resources that are missing on a node, with which the pod would fit there."""

    node: str
    changes: tuple[str, ...]
    missing: Mapping[str, int]
    request: PodRequest  # the changed pod, which also requests that much less: it fits now

    def __str__(self) -> str:
        lacks = " and ".join(amount_text(name, nano) for name, nano in sorted(self.missing.items()))
        parts = (*self.changes, *([f"node {self.node} had {lacks} more free"] if lacks else ()))
        return f"would fit if {' and '.join(parts)}"


class _Constraint(Enum):
    """A constraint that a changed pod does not have."""

    TAINTS = "it tolerated"
    NODES = "it had no nodeSelector and no required node affinity"
    PODS = "it had no pod affinity, anti-affinity and topology spread constraints"


def remedy(request: PodRequest, view: ClusterView) -> Remedy | None:
    """The fewest changes after which a pod fits; None if it fits as it is, or if no node is ready."""
    for count in range(len(_Constraint) + 1):
        for dropped in itertools.combinations(_Constraint, count):
            nodes = evaluation.passing(_without(request, dropped), view)
            best = min(nodes, key=lambda node: _distance(request, node), default=None)
            if best is not None:
                return _on(best, request, dropped)
    return None


def _without(request: PodRequest, dropped: Collection[_Constraint]) -> PodRequest:
    """The pod without these constraints."""
    if _Constraint.TAINTS in dropped:
        request = replace(request, tolerations=(Toleration(operator="Exists"),))
    if _Constraint.NODES in dropped:
        request = replace(request, affinity=NodeAffinity())
    return replace(request, pod_constraints=pod_affinity_terms.NONE) if _Constraint.PODS in dropped else request


def _on(node: Node, request: PodRequest, dropped: Collection[_Constraint]) -> Remedy | None:
    """The remedy on a node that passes the filters; None if the pod fits there as it is."""
    missing = dict(_missing(request, node))
    taints = _untolerated(request, node) if _Constraint.TAINTS in dropped else ()
    changes = (
        *(f"it tolerated the taint {taint} of node {node.name}" for taint in taints),
        *(one.value for one in dropped if one is not _Constraint.TAINTS),
    )
    if not (changes or missing):
        return None
    changed = _without(request, set(dropped) - {_Constraint.TAINTS})
    added = tuple(Toleration(one.key, "Equal", one.value, one.effect) for one in taints)
    amounts = {name: max(0, nano - missing.get(name, 0)) for name, nano in request.amounts.items()}
    return Remedy(
        node.name, changes, missing, replace(changed, amounts=amounts, tolerations=(*request.tolerations, *added))
    )


def _missing(request: PodRequest, node: Node) -> Iterator[tuple[str, int]]:
    for name, nano in request.amounts.items():
        lack = nano - node.free.get(name, 0)
        if nano > 0 and lack > 0:
            yield name, lack


def _untolerated(request: PodRequest, node: Node) -> tuple[Taint, ...]:
    cordon = (filters.CORDON,) if node.shape.is_cordoned else ()
    taints = dict.fromkeys((*node.shape.taints, *cordon))
    return tolerations.untolerated(taints, request.tolerations)


def _distance(request: PodRequest, node: Node) -> tuple[float, int, str]:
    """How far a node is from taking a pod: what is missing, in shares of the request, then the taints."""
    shares = sum(lack / request.amounts[name] for name, lack in _missing(request, node))
    return shares, len(_untolerated(request, node)), node.name
