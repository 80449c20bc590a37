"""The capacity of a lower cluster for one upper cluster: allocatable of its nodes, less what other pods request there.

Updated per node and pod event; sums are exact, because each object's part is stored and replaced. The caller watches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from hansa.kube import objects
from hansa.kube.language import quantity, tolerations
from hansa.model import requests
from hansa.model.requests import Amounts

READY = "Ready"
ALWAYS_REPORTED = ("cpu", "memory", "pods")  # also when the amount is zero
_BINARY = frozenset({"memory", "ephemeral-storage", "storage"})


class NodeCondition(msgspec.Struct, frozen=True, gc=False):
    """A condition of a node."""

    type: str = ""
    status: str = ""


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node's status that are read."""

    allocatable: Mapping[str, str] | None = None
    conditions: tuple[NodeCondition, ...] | None = None


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node's spec that are read."""

    unschedulable: bool | None = None
    taints: tuple[tolerations.Taint, ...] | None = None


class NodeInfo(msgspec.Struct, frozen=True, gc=False):
    """The part of a node that counts. `is_schedulable`: ready, not cordoned, and all its taints are tolerated."""

    allocatable: Amounts
    is_schedulable: bool
    true_conditions: frozenset[str]
    labels: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return READY in self.true_conditions


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Capacity of a virtual node, and the part of it that pods of its upper cluster can use."""

    capacity: Amounts
    allocatable: Amounts


class _NodeUsage:
    """One node and the requests of pods bound to it. Pod events may arrive before the event of their node."""

    __slots__ = ("info", "others", "ours", "pods")

    def __init__(self) -> None:
        self.info: NodeInfo | None = None
        self.ours: Amounts = {}
        self.others: Amounts = {}
        self.pods = 0

    @property
    def is_schedulable(self) -> bool:
        return self.info is not None and self.info.is_schedulable

    def capacity(self) -> Amounts:
        # An unschedulable node still runs pods of ours. The upper scheduler subtracts their requests from the total:
        # without them in the capacity, it would subtract them from other nodes' capacity.
        return self.info.allocatable if self.info and self.info.is_schedulable else self.ours

    def free(self) -> Amounts:
        """What our pods can use. An overcommitted node counts as zero; it does not reduce other nodes' part."""
        if self.info is None or not self.info.is_schedulable:
            return self.ours
        left = {name: nano - self.others.get(name, 0) for name, nano in self.info.allocatable.items()}
        return {name: nano for name, nano in left.items() if nano > 0}


class Capacity:
    """The totals of one cluster. `is_ours` selects the pods that are copies of the upper cluster's pods.

    A node counts while it is ready, not cordoned, and `tolerated` tolerates all its taints. Its labels with keys in
    `label_keys` are stored.
    """

    def __init__(
        self,
        is_ours: Callable[[objects.Object], bool],
        *,
        tolerated: Sequence[tolerations.Toleration] = (),
        label_keys: Iterable[str] = (),
    ) -> None:
        self._is_ours, self._tolerated, self._label_keys = is_ours, tolerated, tuple(label_keys)
        self._nodes: dict[str, _NodeUsage] = {}
        self._pods: dict[objects.NamespacedName, tuple[requests.BoundRequest, bool]] = {}
        self._capacity: Amounts = {}
        self._allocatable: Amounts = {}

    def node(self, name: str, node: objects.Object | None) -> bool:
        """Update a node, or remove it (None). Returns whether that changed anything."""
        info = None if node is None else self._node_info(node)
        usage = self._nodes.setdefault(name, _NodeUsage())
        is_changed = info != usage.info
        if is_changed:
            self._count(usage, -1)
            usage.info = info
            self._count(usage, 1)
        self._drop_if_unused(name)
        return is_changed

    def pod(self, key: objects.NamespacedName, pod: objects.Object | None) -> bool:
        """Update a pod, or remove it (None). Returns whether that changed the totals."""
        old = self._pods.get(key)
        bound = None if pod is None else requests.of_bound_pod(pod)
        new = None if pod is None or bound is None else (bound, self._is_ours(pod))
        if new == old:
            return False
        is_changed = False
        if old is not None:
            del self._pods[key]
            is_changed = self._bind(*old, times=-1)
        if new is not None:
            self._pods[key] = new
            is_changed = self._bind(*new, times=1) or is_changed
        return is_changed

    def totals(self) -> Totals:
        """The current sums. A resource in the capacity is also in allocatable, as zero if it is used up."""
        capacity = {name: self._capacity.get(name, 0) for name in (*ALWAYS_REPORTED, *sorted(self._capacity))}
        return Totals(capacity, {name: self._allocatable.get(name, 0) for name in capacity})

    def node_infos(self) -> list[NodeInfo]:
        """All nodes, including unschedulable ones."""
        return [usage.info for usage in self._nodes.values() if usage.info is not None]

    def _node_info(self, node: objects.Object) -> NodeInfo:
        spec, status = node.decode("spec", NodeSpec), node.decode("status", NodeStatus)
        conditions = frozenset(one.type for one in status.conditions or () if one.status == "True")
        untolerated = tolerations.untolerated(spec.taints or (), self._tolerated)
        return NodeInfo(
            allocatable=requests.amounts(status.allocatable),
            is_schedulable=READY in conditions and not (spec.unschedulable or untolerated or node.is_deleting),
            true_conditions=conditions,
            labels={key: node.labels[key] for key in self._label_keys if key in node.labels},
        )

    def _bind(self, bound: requests.BoundRequest, is_ours: bool, *, times: int) -> bool:
        """Add a pod's requests to its node, or subtract them; returns whether the totals change."""
        usage = self._nodes.setdefault(bound.node, _NodeUsage())
        # Our pods count on unschedulable nodes, other pods on schedulable ones.
        is_changed = is_ours is not usage.is_schedulable
        if is_changed:
            self._count(usage, -1)
        requests.add(usage.ours if is_ours else usage.others, bound.amounts, times)
        if is_changed:
            self._count(usage, 1)
        usage.pods += times
        self._drop_if_unused(bound.node)
        return is_changed

    def _count(self, usage: _NodeUsage, times: int) -> None:
        requests.add(self._capacity, usage.capacity(), times)
        requests.add(self._allocatable, usage.free(), times)

    def _drop_if_unused(self, name: str) -> None:
        usage = self._nodes[name]
        if usage.info is None and not usage.pods:
            del self._nodes[name]


def resource_list(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as a ResourceList of the API, each quantity in the usual format of its resource."""
    return {name: str(quantity.Quantity(nano, format_of(name))) for name, nano in amounts.items()}


def format_of(name: str) -> quantity.Format:
    """The usual quantity format of a resource: binary suffixes for bytes."""
    is_binary = name in _BINARY or name.startswith("hugepages-")
    return quantity.Format.BINARY if is_binary else quantity.Format.DECIMAL
