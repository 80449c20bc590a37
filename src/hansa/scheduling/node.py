"""A node for schedulers: its free resources, and its shape (labels, taints, state), which many nodes share.

Labels that are unique per node are not part of the shape: otherwise every node had its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hansa.kube import objects
from hansa.kube.language import tolerations
from hansa.model import capacity, requests

OWN_LABELS: Final = frozenset({"kubernetes.io/hostname", "alpha.eksctl.io/instance-id"})
"""Labels that are unique per node."""


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
        return self.own.get(key) if key in OWN_LABELS else self.shape.labels.get(key)

    def labels(self) -> dict[str, str]:
        """All labels."""
        return {**self.shape.labels, **self.own}


def of_object(node: objects.Object, load: Mapping[str, int]) -> Node:
    """Decode a Node whose pods request this load."""
    spec, status = node.decode("spec", capacity.NodeSpec), node.decode("status", capacity.NodeStatus)
    labels = {key: value for key, value in node.labels.items() if key not in OWN_LABELS}
    shape = Shape(
        pairs=tuple(sorted(labels.items())),
        taints=spec.taints or (),
        is_ready=any(one.type == "Ready" and one.status == "True" for one in status.conditions or ()),
        is_cordoned=bool(spec.unschedulable) or node.is_deleting,
        labels=labels,
    )
    own = {key: node.labels[key] for key in OWN_LABELS if key in node.labels}
    allocatable = requests.amounts(status.allocatable)
    return Node(node.name, shape, own, allocatable, remaining(allocatable, load))


def remaining(allocatable: Mapping[str, int], load: Mapping[str, int]) -> requests.Amounts:
    """Allocatable less the load; negative if the node is overcommitted."""
    return {name: nano - load.get(name, 0) for name, nano in allocatable.items()}


def with_free(node: Node, free: requests.Amounts) -> Node:
    """The node with other free resources."""
    return Node(node.name, node.shape, node.own, node.allocatable, free)
