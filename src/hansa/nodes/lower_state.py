"""The state of a lower cluster at one moment: the only input of a virtual node's manifest. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hansa.model import capacity
from hansa.nodes import settings

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
LABELS = (OS, ARCH, REGION, ZONE)  # labels of lower nodes that a virtual node gets
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the state of a lower cluster is unknown: reason and message of the condition Ready."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """Labels and conditions that the nodes of a lower cluster have in common, and counts of nodes."""

    os: str = "linux"
    arch: str = "amd64"
    labels: Mapping[str, str] = field(default_factory=dict)  # that all nodes have in common, such as region and zone
    pressures: frozenset[str] = frozenset()  # those that all ready nodes have
    total: int = 0
    schedulable: int = 0


@dataclass(frozen=True, slots=True)
class LowerState:
    """What a virtual node reports. With a problem, totals, nodes and version are stale or empty."""

    settings: settings.NodeSettings
    totals: capacity.Totals
    nodes: NodeSummary
    version: str = ""  # of the lower API server
    problem: Problem | None = None


def summarize(node_infos: Iterable[capacity.NodeInfo]) -> NodeSummary:
    """Summarize the nodes of a lower cluster."""
    node_infos = list(node_infos)
    ready = [info for info in node_infos if info.is_ready]
    agreed = ((key, {info.labels.get(key) for info in node_infos}) for key in (REGION, ZONE))
    return NodeSummary(
        os=_most_common((info.labels.get(OS) for info in node_infos), "linux"),
        arch=_most_common((info.labels.get(ARCH) for info in node_infos), "amd64"),
        labels={key: value for key, values in agreed if len(values) == 1 and (value := values.pop())},
        pressures=frozenset(p for p in PRESSURES if ready and all(p in info.true_conditions for info in ready)),
        total=len(node_infos),
        schedulable=sum(info.is_schedulable for info in node_infos),
    )


def _most_common(values: Iterable[str | None], default: str) -> str:
    """The most common value; of several, the first in alphabetical order, so that the result is stable."""
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default=default)
