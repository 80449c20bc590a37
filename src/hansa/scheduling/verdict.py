"""What a judge says: where a pod fits, and for each other cluster why not, as values that print as sentences."""

from collections.abc import Mapping
from dataclasses import dataclass

from hansa.kube.language import quantity
from hansa.model import capacity, requests


@dataclass(frozen=True, slots=True)
class Fit:
    """A cluster that has room, with the node that would be best. `left` names what only the cluster can judge."""

    cluster: str
    node: str
    score: int = 0
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shortage:
    """No node has this much free. `largest` is the most that one has, on `node`; nothing if none offers it at all."""

    resource: str
    asked: int
    largest: int
    node: str = ""

    def __str__(self) -> str:
        if not self.node:
            return f"no node with any {noun(self.resource)}"
        wanted = told(self.resource, self.asked)
        return f"no node with {wanted} free; largest {number(self.resource, max(0, self.largest))} on {self.node}"


@dataclass(frozen=True, slots=True)
class Scattered:
    """All that was asked for is free, but nowhere together."""

    asked: Mapping[str, int]

    def __str__(self) -> str:
        parts = " and ".join(told(name, nano) for name, nano in self.asked.items() if nano > 0)
        return f"no node with {parts} free together"


@dataclass(frozen=True, slots=True)
class Against:
    """Some nodes are out of the question for one reason."""

    nodes: int
    why: str

    def __str__(self) -> str:
        return f"{self.nodes} node{'s' if self.nodes != 1 else ''} {self.why}"


@dataclass(frozen=True, slots=True)
class Closed:
    """The cluster as a whole is out of the question."""

    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A budget that the pod lives on in this cluster, such as "the slices", has less than this left."""

    budget: str
    resource: str
    asked: int
    left: int

    def __str__(self) -> str:
        left = number(self.resource, max(0, self.left))
        return f"{self.budget} have {left} of {told(self.resource, self.asked)} left"


Reason = Shortage | Scattered | Against | Closed | Exhausted


@dataclass(frozen=True, slots=True)
class Refusal:
    """A cluster that cannot take the pod, and why."""

    cluster: str
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        return f"{self.cluster}: {'; '.join(map(str, self.reasons)) or 'no nodes'}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where a pod fits, best first, and where not, by name."""

    fits: tuple[Fit, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def best(self) -> Fit | None:
        """The cluster to take, if there is one."""
        return self.fits[0] if self.fits else None

    def __str__(self) -> str:
        return f"fits in {self.fits[0].cluster}" if self.fits else ". ".join(map(str, self.refusals)) or "no clusters"


def told(resource: str, nano: int) -> str:
    """An amount for a person: "3 CPU", "1.5Gi memory", "a pod slot"."""
    if resource == requests.PODS and nano == quantity.UNIT:
        return "a pod slot"
    return f"{number(resource, nano)} {noun(resource)}"


def noun(resource: str) -> str:
    """What people call a resource."""
    return {"cpu": "CPU", requests.PODS: "pod slots"}.get(resource, resource)


def number(resource: str, nano: int) -> str:
    """The amount alone, rounded down to what people read: a shortage must not look like enough."""
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
