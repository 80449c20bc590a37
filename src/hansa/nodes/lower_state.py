"""What a virtual node has to tell, at one moment: the only input of its view."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hansa.model import capacity
from hansa.nodes import settings

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
LABELS = (OS, ARCH, REGION, ZONE)  # what a virtual node tells of the nodes below
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why nothing is known of a lower cluster: a word for machines, a sentence for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeSurvey:
    """What the nodes of a lower cluster have in common."""

    os: str = "linux"
    arch: str = "amd64"
    places: Mapping[str, str] = field(default_factory=dict)  # region and zone, where all nodes have the same
    pressures: frozenset[str] = frozenset()  # under which all ready nodes are
    nodes: int = 0
    open_nodes: int = 0


@dataclass(frozen=True, slots=True)
class LowerState:
    """All that a virtual node tells. With a trouble, the facts about the lower cluster are old or none."""

    settings: settings.NodeSettings
    totals: capacity.Totals
    landscape: NodeSurvey
    version: str = ""  # of the lower API server
    trouble: Problem | None = None


def survey(grounds: Iterable[capacity.Ground]) -> NodeSurvey:
    """Look over the nodes of a lower cluster."""
    grounds = list(grounds)
    ready = [ground for ground in grounds if ground.is_ready]
    agreed = ((key, {ground.labels.get(key) for ground in grounds}) for key in (REGION, ZONE))
    return NodeSurvey(
        os=_most_common((ground.labels.get(OS) for ground in grounds), "linux"),
        arch=_most_common((ground.labels.get(ARCH) for ground in grounds), "amd64"),
        places={key: value for key, values in agreed if len(values) == 1 and (value := values.pop())},
        pressures=frozenset(p for p in PRESSURES if ready and all(p in ground.true_conditions for ground in ready)),
        nodes=len(grounds),
        open_nodes=sum(ground.takes_pods for ground in grounds),
    )


def _most_common(values: Iterable[str | None], default: str) -> str:
    """Of values that are equally common the first by alphabet, so that the answer never wavers."""
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default=default)
