"""A node for schedulers: its free resources, and its shape (labels, taints, state), which many nodes share.

Labels that tell nodes apart are not part of the shape: otherwise every node had its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hansa.kube import objects
from hansa.kube.language import tolerations
from hansa.model import capacity, requests

OWN_LABELS: Final = frozenset({"kubernetes.io/hostname", "alpha.eksctl.io/instance-id"})
"""Labels that are unique per node in every cluster; a view finds those of its own."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Everything that filters read of a node, except free resources and unique labels."""

    pairs: tuple[tuple[str, str], ...] = ()
    taints: tuple[tolerations.Taint, ...] = ()
    is_ready: bool = True
    is_cordoned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)  # `pairs` as a mapping


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node and its free resources."""

    name: str
    shape: Shape
    own: Mapping[str, str]
    allocatable: requests.Amounts
    free: requests.Amounts

    def label(self, key: str) -> str | None:
        """The value of one label."""
        return self.own[key] if key in self.own else self.shape.labels.get(key)

    def labels(self) -> dict[str, str]:
        """All labels."""
        return {**self.shape.labels, **self.own}


def of_object(node: objects.Object, load: Mapping[str, int], own_labels: frozenset[str] = OWN_LABELS) -> Node:
    """Decode a Node whose pods request this load."""
    spec, status = node.decode("spec", capacity.NodeSpec), node.decode("status", capacity.NodeStatus)
    state = Shape(
        taints=spec.taints or (),
        is_ready=any(one.type == "Ready" and one.status == "True" for one in status.conditions or ()),
        is_cordoned=bool(spec.unschedulable) or node.is_deleting,
    )
    allocatable = requests.amounts(status.allocatable)
    return with_own(Node(node.name, state, node.labels, allocatable, remaining(allocatable, load)), own_labels)


def with_own(node: Node, own_labels: frozenset[str]) -> Node:
    """The node with exactly these labels outside its shape."""
    labels: dict[str, str] = {}
    own: dict[str, str] = {}
    for key, value in node.labels().items():
        (own if key in own_labels else labels)[key] = value
    shape = Shape(tuple(sorted(labels.items())), node.shape.taints, node.shape.is_ready, node.shape.is_cordoned, labels)
    return Node(node.name, shape, own, node.allocatable, node.free)


def remaining(allocatable: Mapping[str, int], load: Mapping[str, int]) -> requests.Amounts:
    """Allocatable less the load; negative if the node is overcommitted. A negative load counts as zero."""
    return {name: nano - max(0, load.get(name, 0)) for name, nano in allocatable.items()}


def with_free(node: Node, free: requests.Amounts) -> Node:
    """The node with other free resources."""
    return Node(node.name, node.shape, node.own, node.allocatable, free)
