"""Reads the ClusterSummary of a target: for its virtual node, and for the choice of a target. Pure."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hansa.kube.language.quantity import QuantityError
from hansa.kube.objects import Malformed, Object
from hansa.model import requests
from hansa.model.capacity import Totals
from hansa.nodes.lower_state import ARCH, OS, NodeSummary
from hansa.scheduling import node
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import OWN_LABELS, Node

HOSTNAME = "kubernetes.io/hostname"
# A summary is written by another cluster, which may not be trusted. Nodes and shapes beyond these are not read; the
# sums still count them.
MOST_NODES = 5_000  # as many as a cluster of Kubernetes may have
MOST_SHAPES = 256  # an evaluation of a pod filters each
LONGEST = 2 * 1024 * 1024  # bytes; etcd accepts less
MOST_ENTRIES = 256  # labels or taints of a node, or of the virtual node
MOST_RESOURCES = 64
NOTHING = Totals({}, {})
IsExcluded = Callable[[str, str], bool]
_Amount = str | int


class _Free(msgspec.Struct, frozen=True):
    count: int = 0
    free: Mapping[str, _Amount] = {}
    hostnames: tuple[str, ...] = ()


class _Shape(msgspec.Struct, frozen=True):
    labels: Mapping[str, str] = {}
    taints: tuple[dict[str, str], ...] = ()
    unschedulable: bool = False
    nodes: tuple[_Free, ...] = ()


class _Counts(msgspec.Struct, frozen=True):
    total: int = 0
    schedulable: int = 0


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """A ClusterSummary that was read. `problem` is why it can't be used; empty if it can."""

    totals: Totals = NOTHING
    nodes: NodeSummary = field(default_factory=NodeSummary)
    version: str = ""  # of the target's API server
    # One entry per node, with what is free on it; names are made up.
    scheduling: ClusterView = field(default_factory=lambda: ClusterView(""))
    problem: str = ""


def read(name: str, summary: Object, is_excluded: IsExcluded) -> TargetSummary:
    """Read the summary of a target. Labels that are excluded are not labels of its virtual node."""
    try:
        _check(summary)
        return TargetSummary(
            totals=Totals(_amounts(summary, "capacity"), _amounts(summary, "allocatable")),
            nodes=_node_summary(summary, is_excluded),
            version=str(summary.get("version", "")),
            scheduling=_view(name, summary),
        )
    except (Malformed, QuantityError) as error:
        return TargetSummary(problem=f"its ClusterSummary is malformed: {error}")


def _check(summary: Object) -> None:
    size = sum(len(summary.raw(field)) for field in ("capacity", "allocatable", "nodes", "shapes"))
    if size > LONGEST:
        raise Malformed(f"has {size} bytes, more than {LONGEST}")
    _check_entries(summary.labels, "labels")


def _check_entries(entries: Sized, field: str, most: int = MOST_ENTRIES) -> None:
    if len(entries) > most:
        raise Malformed(f"{len(entries)} {field}, more than {most}")


def _node_summary(summary: Object, is_excluded: IsExcluded) -> NodeSummary:
    counts = summary.decode("nodes", _Counts)
    labels = {key: value for key, value in summary.labels.items() if key not in OWN_LABELS}
    return NodeSummary(
        os=labels.get(OS, "linux"),
        arch=labels.get(ARCH, "amd64"),
        labels={key: value for key, value in labels.items() if not is_excluded(key, value)},
        total=counts.total,
        schedulable=counts.schedulable,
    )


def _view(name: str, summary: Object) -> ClusterView:
    shapes = summary.decode("shapes", tuple[_Shape, ...]) if summary.raw("shapes") else ()
    return ClusterView.of_nodes(name, itertools.islice(_nodes(shapes[:MOST_SHAPES]), MOST_NODES))


def _nodes(shapes: Iterable[_Shape]) -> Iterator[Node]:
    for shape_number, shape in enumerate(shapes):
        _check_entries(shape.labels, f"labels of shapes[{shape_number}]")
        _check_entries(shape.taints, f"taints of shapes[{shape_number}]")
        number, alike = itertools.count(), node.of_object(_node(shape), {})
        for same in shape.nodes:
            _check_entries(same.free, f"free resources of shapes[{shape_number}]", MOST_RESOURCES)
            free = requests.amounts(_texts(same.free))
            for index in range(same.count):
                own = {HOSTNAME: same.hostnames[index]} if index < len(same.hostnames) else alike.own
                yield Node(f"shape-{shape_number}-{next(number)}", alike.shape, own, free, free)


def _node(shape: _Shape) -> Object:
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "any", "labels": dict(shape.labels)},
            "spec": {"taints": list(shape.taints), "unschedulable": shape.unschedulable},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
    )


def _amounts(summary: Object, field: str) -> requests.Amounts:
    amounts = summary.decode(field, dict[str, Any])
    _check_entries(amounts, f"resources in {field}", MOST_RESOURCES)
    return requests.amounts(_texts(amounts))


def _texts(amounts: Mapping[str, _Amount]) -> dict[str, str]:
    """Quantities as texts: the API accepts numbers, too."""
    return {name: str(amount) for name, amount in amounts.items()}
