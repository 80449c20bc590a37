"""What a ClusterSummary says: sums over the nodes, the labels that they share, and what is free on nodes of each shape.

Pure; updated per node and pod event. Watching and writing are left to `summary_publisher`, reading to `summaries`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

import msgspec

from hansa.kube.language import tolerations
from hansa.kube.objects import NamespacedName, Object
from hansa.model import capacity, keys, requests
from hansa.model.capacity import NodeCondition
from hansa.model.requests import Amounts
from hansa.scheduling import own_labels
from hansa.scheduling.node import Shape

HOSTNAME: Final = "kubernetes.io/hostname"
# Labels that are unique per node: with them, every node had a shape of its own.
UNIQUE: Final = frozenset({HOSTNAME, "alpha.eksctl.io/instance-id"})
MOST_SHAPES: Final = 128  # with more, the labels with most values are left out, such as ids of machines
OWN: Final = "hansa.dev/"  # labels that say who runs a node, such as those of development clusters
MOST_HOSTNAMES: Final = 500  # nodes; the names of more would make the summary large
Json = dict[str, Any]


class _Status(msgspec.Struct, frozen=True, gc=False):
    capacity: Mapping[str, str] | None = None
    allocatable: Mapping[str, str] | None = None
    conditions: tuple[NodeCondition, ...] | None = None


class _Node(msgspec.Struct, frozen=True, gc=False):
    labels: Mapping[str, str]
    capacity: Amounts
    allocatable: Amounts
    taints: tuple[tolerations.Taint, ...]
    is_ready: bool
    is_cordoned: bool

    def shape(self, own: Set[str]) -> Shape:
        """What nodes of one shape have in common, without these labels."""
        labels = {key: value for key, value in sorted(self.labels.items()) if key not in own}
        return Shape(tuple(labels.items()), self.taints, is_cordoned=self.is_cordoned, labels=labels)


class NodeLoads:
    """The nodes of a cluster, and the requests of pods bound to them. Virtual nodes of targets don't count."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[NamespacedName, requests.BoundRequest] = {}
        self._loads: dict[str, Amounts] = {}

    def node(self, name: str, node: Object | None) -> bool:
        """Update a node, or remove it (None). Returns whether that changes the summary."""
        old, new = self._nodes.pop(name, None), None if node is None else _node(node)
        if new is not None:
            self._nodes[name] = new
        return old != new

    def pod(self, key: NamespacedName, pod: Object | None) -> bool:
        """Update a pod, or remove it (None). Returns whether that changes the summary."""
        old, new = self._pods.pop(key, None), None if pod is None else requests.of_bound_pod(pod)
        if new is not None:
            self._pods[key] = new
        if old == new:
            return False
        for bound, times in ((old, -1), (new, 1)):
            if bound is not None:
                self._bind(bound, times)
        return any(bound is not None and bound.node in self._nodes for bound in (old, new))

    def summary(self) -> Json:
        """The content of the ClusterSummary."""
        nodes = self._nodes.values()
        return {
            "capacity": _sum(node.capacity for node in nodes),
            "allocatable": _sum(node.allocatable for node in nodes),
            "nodes": {
                "total": len(self._nodes),
                "schedulable": sum(node.is_ready and not node.is_cordoned for node in nodes),
            },
            "shapes": list(self._shapes()),
        }

    def labels(self) -> dict[str, str]:
        """The labels that have the same value on all nodes that have them, other than our own."""
        values: defaultdict[str, set[str]] = defaultdict(set)
        for node in self._nodes.values():
            for key, value in node.labels.items():
                values[key].add(value)
        return {
            key: next(iter(found))
            for key, found in sorted(values.items())
            if len(found) == 1 and not key.startswith(OWN)
        }

    def _bind(self, bound: requests.BoundRequest, times: int) -> None:
        load = self._loads.setdefault(bound.node, {})
        requests.add(load, bound.amounts, times)
        if not load:
            del self._loads[bound.node]

    def _shapes(self) -> Iterable[Json]:
        groups = self._groups(UNIQUE)
        if len(groups) > MOST_SHAPES:
            groups = self._groups(own_labels.found(groups, UNIQUE, most_groups=MOST_SHAPES))
        for shape, names in groups.items():
            yield {
                "labels": dict(shape.labels),
                "taints": [msgspec.to_builtins(taint) for taint in shape.taints],
                "unschedulable": shape.is_cordoned,
                "nodes": list(self._free(names)),
            }

    def _groups(self, own: Set[str]) -> dict[Shape, list[str]]:
        """The names of ready nodes by their shape without these labels."""
        groups: defaultdict[Shape, list[str]] = defaultdict(list)
        for name, node in sorted(self._nodes.items()):
            if node.is_ready:
                groups[node.shape(own)].append(name)
        return groups

    def _free(self, names: Iterable[str]) -> Iterable[Json]:
        alike: defaultdict[tuple[tuple[str, int], ...], list[str]] = defaultdict(list)
        for name in names:
            node, load = self._nodes[name], self._loads.get(name, {})
            alike[tuple((what, max(0, nano - load.get(what, 0))) for what, nano in node.allocatable.items())].append(
                name
            )
        for free, same in alike.items():
            entry: Json = {"count": len(same), "free": capacity.resource_list(dict(free))}
            hostnames = [self._nodes[name].labels.get(HOSTNAME, "") for name in same]
            if len(self._nodes) <= MOST_HOSTNAMES and all(hostnames):
                entry["hostnames"] = hostnames
            yield entry


def _node(node: Object) -> _Node | None:
    """The part of a node that counts; None for a virtual node of a target."""
    if node.labels.get(keys.PROVIDER_TAINT) == "admiralty":
        return None
    spec, status = node.decode("spec", capacity.NodeSpec), node.decode("status", _Status)
    return _Node(
        labels=dict(node.labels),
        capacity=requests.amounts(status.capacity),
        allocatable=requests.amounts(status.allocatable),
        taints=tuple(sorted(spec.taints or (), key=str)),
        is_ready=any(one.type == "Ready" and one.status == "True" for one in status.conditions or ()),
        is_cordoned=bool(spec.unschedulable) or node.is_deleting,
    )


def _sum(parts: Iterable[Amounts]) -> dict[str, str]:
    total: Amounts = {}
    for part in parts:
        requests.add(total, part)
    return capacity.resource_list(dict(sorted(total.items())))
