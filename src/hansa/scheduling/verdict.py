"""The result of an evaluation: clusters where a pod fits, and reasons for the others, worded as by kube-scheduler."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from hansa.kube.language import quantity
from hansa.model import capacity, requests


@dataclass(frozen=True, slots=True)
class Fit:
    """A cluster where the pod fits, and its best node. `unchecked` names constraints that only the cluster checks."""

    cluster: str
    node: str
    score: int = 0
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Insufficient:
    """No node has this much of a resource free. `node` has most of it, `largest`.

    It is empty if none has any, or if the names of nodes are not known.
    """

    resource: str
    requested: int
    largest: int
    node: str = ""

    def __str__(self) -> str:
        if self.resource == requests.PODS:
            return "Too many pods"
        requested = number(self.resource, self.requested)
        free = number(self.resource, max(0, self.largest)) + (f" on node {self.node}" if self.node else "")
        return f"Insufficient {self.resource} (requested {requested}, most free {free})"


@dataclass(frozen=True, slots=True)
class Fragmented:
    """Each requested resource is free on some node, but no node has all of them."""

    requested: Mapping[str, int]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {number(name, nano)}" for name, nano in self.requested.items() if nano > 0)
        return f"no single node has {parts} free"


@dataclass(frozen=True, slots=True)
class Filtered:
    """Nodes that a filter excludes, and its reason."""

    nodes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.nodes} {self.reason}"


@dataclass(frozen=True, slots=True)
class Closed:
    """The cluster accepts no new pods."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A budget of the pod in this cluster, such as the slices of its namespace, has less than this left."""

    budget: str
    resource: str
    requested: int
    left: int

    def __str__(self) -> str:
        requested, left = number(self.resource, self.requested), number(self.resource, max(0, self.left))
        return f"Insufficient {self.resource} in {self.budget} (requested {requested}, left {left})"


Reason = Insufficient | Fragmented | Filtered | Closed | Exhausted


@dataclass(frozen=True, slots=True)
class Refusal:
    """A cluster where the pod doesn't fit, and the reasons."""

    cluster: str
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return f"{self.cluster}: {'; '.join(map(str, self.reasons)) or 'no nodes'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The clusters where a pod fits, best first, and the others, by name."""

    fits: tuple[Fit, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, results: Iterable[Fit | Refusal]) -> Self:
        """The results of all clusters, in order."""
        every = list(results)
        return cls(
            tuple(sorted((one for one in every if isinstance(one, Fit)), key=lambda fit: (-fit.score, fit.cluster))),
            tuple(sorted((one for one in every if isinstance(one, Refusal)), key=lambda one: one.cluster)),
        )

    @property
    def best(self) -> Fit | None:
        """The best cluster, if the pod fits in any."""
        return self.fits[0] if self.fits else None

    def __str__(self) -> str:
        return f"fits in {self.fits[0].cluster}" if self.fits else ". ".join(map(str, self.refusals)) or "no clusters"


def amount_text(resource: str, nano: int) -> str:
    """An amount with its resource, for messages: "3 CPU", "1.5Gi memory"."""
    return f"{number(resource, nano)} {'CPU' if resource == 'cpu' else resource}"


def number(resource: str, nano: int) -> str:
    """An amount for messages, rounded down, so that too little never looks like enough."""
    if capacity.format_of(resource) is not quantity.Format.BINARY:
        return _decimal(nano, quantity.UNIT, places=3)
    for suffix, size in _SIZES:
        if nano >= size * quantity.UNIT:
            return _decimal(nano, size * quantity.UNIT, places=1) + suffix
    return _decimal(nano, quantity.UNIT, places=0)


_SIZES = tuple((suffix, 1024**power) for power, suffix in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")))


def _decimal(nano: int, unit: int, *, places: int) -> str:
    whole, rest = divmod(nano * 10**places // unit, 10**places)
    return f"{whole}.{rest:0{places}}".rstrip("0").rstrip(".") if rest else str(whole)
