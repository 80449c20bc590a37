"""Reads the ClusterSummary of a target: for its virtual node, and for the choice of a target. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hansa.kube.language.quantity import QuantityError
from hansa.kube.objects import Malformed, Object
from hansa.model import requests
from hansa.model.capacity import Totals
from hansa.nodes.lower_state import ARCH, OS, NodeSummary
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.node import OWN_LABELS

HOSTNAME = "kubernetes.io/hostname"
MOST_NODES = 20_000  # nodes that are read of one summary; the counts are another cluster's claim
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
        return TargetSummary(
            totals=Totals(_amounts(summary, "capacity"), _amounts(summary, "allocatable")),
            nodes=_node_summary(summary, is_excluded),
            version=str(summary.get("version", "")),
            scheduling=_view(name, summary),
        )
    except (Malformed, QuantityError) as error:
        return TargetSummary(problem=f"its ClusterSummary is malformed: {error}")


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
    found = ClusterView(name)
    for node in _nodes(summary.decode("shapes", tuple[_Shape, ...]) if summary.raw("shapes") else ()):
        found = found.with_node(node)
    return found


def _nodes(shapes: Iterable[_Shape]) -> Iterator[Object]:
    made = 0
    for shape_number, shape in enumerate(shapes):
        number = 0
        for same in shape.nodes:
            for index in range(min(same.count, MOST_NODES - made)):
                hostname = same.hostnames[index] if index < len(same.hostnames) else ""
                yield _node(f"shape-{shape_number}-{number}", shape, same.free, hostname)
                number, made = number + 1, made + 1


def _node(name: str, shape: _Shape, free: Mapping[str, _Amount], hostname: str) -> Object:
    labels = {**shape.labels, **({HOSTNAME: hostname} if hostname else {})}
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": list(shape.taints), "unschedulable": shape.unschedulable},
            "status": {"allocatable": _texts(free), "conditions": [{"type": "Ready", "status": "True"}]},
        }
    )


def _amounts(summary: Object, field: str) -> requests.Amounts:
    return requests.amounts(_texts(summary.decode(field, dict[str, Any])))


def _texts(amounts: Mapping[str, _Amount]) -> dict[str, str]:
    """Quantities as texts: the API accepts numbers, too."""
    return {name: str(amount) for name, amount in amounts.items()}
