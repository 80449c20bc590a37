"""What would make a pod fit in a cluster: the fewest changes of the pod, and what is missing on the best node. Pure.

Used to explain a refusal. The answer has the changed request, which fits, so that it can be checked.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from hansa.kube.language import tolerations
from hansa.kube.language.affinity import NodeAffinity
from hansa.kube.language.tolerations import Taint, Toleration
from hansa.model import capacity
from hansa.scheduling import evaluation, filters, pod_affinity_terms
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import Node
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import amount_text


class Constraint(Enum):
    """A constraint that a changed pod does not have."""

    TAINTS = "it tolerated"
    NODES = "it had no nodeSelector and no required node affinity"
    PODS = "it had no pod affinity, anti-affinity and topology spread constraints"
    PORTS = "it had no host ports"


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes of a pod, and resources that are missing on a node, with which the pod would fit there."""

    node: str  # empty if the names of nodes are not known
    missing: Mapping[str, int]
    request: PodRequest  # the changed pod, which also requests that much less: it fits now
    taints: tuple[Taint, ...] = ()
    without: tuple[Constraint, ...] = ()

    def parts(self) -> tuple[str, ...]:
        """What has to change, as the ends of sentences that begin with "if"."""
        of_node = f" of node {self.node}" if self.node else ""
        lacks = " and ".join(amount_text(name, nano) for name, nano in sorted(self.missing.items()))
        node = f"node {self.node}" if self.node else "one of its nodes"
        return (
            *(f"it tolerated the taint {taint}{of_node}" for taint in self.taints),
            *(one.value for one in self.without),
            *([f"{node} had {lacks} more free"] if lacks else ()),
        )

    def __str__(self) -> str:
        return f"would fit if {' and '.join(self.parts())}"

    def as_json(self) -> dict[str, Any]:
        """The changes for `-o json`."""
        found: dict[str, Any] = {"node": self.node}
        if self.taints:
            found["tolerate"] = [{"key": one.key, "value": one.value, "effect": one.effect} for one in self.taints]
        if self.without:
            found["without"] = [one.name.lower() for one in self.without]
        return found | ({"moreFree": capacity.resource_list(self.missing)} if self.missing else {})


def remedy(request: PodRequest, view: ClusterView, *, only: str = "") -> Remedy | None:
    """The fewest changes after which a pod fits; None if it fits as it is, or if no node is ready.

    `only` names the node that is asked for.
    """
    for count in range(len(Constraint) + 1):
        for dropped in itertools.combinations(Constraint, count):
            nodes = evaluation.passing(_without(request, dropped), view)
            asked = (node for node in nodes if not only or node.name == only)
            best = min(asked, key=lambda node: _distance(request, node), default=None)
            if best is not None:
                return _on(best, request, dropped)
    return None


def _without(request: PodRequest, dropped: Collection[Constraint]) -> PodRequest:
    """The pod without these constraints."""
    if Constraint.TAINTS in dropped:
        request = replace(request, tolerations=(Toleration(operator="Exists"),))
    if Constraint.NODES in dropped:
        request = replace(request, affinity=NodeAffinity())
    if Constraint.PORTS in dropped:
        request = replace(request, host_ports=frozenset())
    return replace(request, pod_constraints=pod_affinity_terms.NONE) if Constraint.PODS in dropped else request


def _on(node: Node, request: PodRequest, dropped: Collection[Constraint]) -> Remedy | None:
    """The remedy on a node that passes the filters; None if the pod fits there as it is."""
    missing = dict(_missing(request, node))
    taints = _untolerated(request, node) if Constraint.TAINTS in dropped else ()
    without = tuple(one for one in dropped if one is not Constraint.TAINTS)
    if not (taints or without or missing):
        return None
    changed = _without(request, without)
    added = tuple(Toleration(one.key, "Equal", one.value, one.effect) for one in taints)
    amounts = {name: max(0, nano - missing.get(name, 0)) for name, nano in request.amounts.items()}
    fitting = replace(changed, amounts=amounts, tolerations=(*request.tolerations, *added))
    return Remedy(node.name, missing, fitting, taints, without)


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
