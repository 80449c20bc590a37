"""What would happen to each pod after changes, in every mode. Pure.

The worlds of the modes decide, with the code of their schedulers; this is the order in which pods are decided about.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self

from hansa.kube.objects import NamespacedName, Object
from hansa.scheduling.forecasting.changes import Change


class Fate(StrEnum):
    """What happens to a pod."""

    MOVES = "moves"  # it ends, and its successor runs elsewhere
    STARTS = "starts"  # it is pending now and would run
    PENDS = "pends"  # it, or its successor, would be pending
    ENDS = "ends"  # nothing creates it again
    STAYS = "stays"  # in a cluster that is lost: it is not moved
    UNKNOWN = "unknown"  # it depends on a cluster that cannot be read


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod of the upper cluster, and where it is: its cluster, and the node there; empty while it has none.

    `key` is shown to people; `space` is the namespace for the world that made it.
    """

    key: NamespacedName
    pod: Object
    cluster: str = ""
    node: str = ""
    space: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it has a node."""
        return bool(self.node)

    @property
    def controller(self) -> str:
        """The kind of the controller that creates its successor; empty without one."""
        owners = self.pod.metadata.owner_references
        return next((one.kind for one in owners if one.controller), "")


@dataclass(frozen=True, slots=True)
class Departure:
    """Why a pod leaves its node. With another fate than MOVES it has no successor."""

    reason: str
    fate: Fate = Fate.MOVES


@dataclass(frozen=True, slots=True)
class Choice:
    """The cluster and node for a pod; without a cluster the reasons of all. `unknown` names clusters without answer."""

    cluster: str = ""
    node: str = ""
    virtual_node: str = ""
    reason: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of one pod."""

    pod: str
    fate: Fate
    now: str  # the cluster; empty while it is pending
    then: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, str]:
        """For `-o json`."""
        return {"pod": self.pod, "fate": self.fate.value, "now": self.now, "then": self.then, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class SliceChange:
    """The slices of a namespace before and after."""

    namespace: str
    now: Mapping[str, int]
    then: Mapping[str, int]
    reason: str = ""  # why some are missing, or kept

    def as_json(self) -> dict[str, Any]:
        """For `-o json`."""
        return {"namespace": self.namespace, "now": dict(self.now), "then": dict(self.then), "reason": self.reason}


class World(Protocol):
    """Clusters and pods at one moment. Immutable: a change returns a new world."""

    def subjects(self) -> list[Subject]:
        """The pods that are in a cluster, or wait for one, the oldest first."""

    def unknown(self) -> Mapping[str, str]:
        """The clusters that cannot be read, with the reasons."""

    def changed(self, change: Change) -> Self:
        """The world with a change; pods are where they were."""

    def departure(self, subject: Subject) -> Departure | None:
        """Why a pod with a cluster leaves it, or None."""

    def choose(self, subject: Subject) -> Choice:
        """Where it goes, as if it was nowhere."""

    def having(self, subject: Subject, choice: Choice) -> Self:
        """The world with a pod on a node."""

    def without(self, subject: Subject) -> Self:
        """The world without a pod."""

    def slice_changes(self, before: Self) -> list[SliceChange]:
        """The namespaces whose slices are others than before."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would happen. Pods that stay and run as before are only counted."""

    outcomes: tuple[Outcome, ...]
    slices: tuple[SliceChange, ...] = ()
    unaffected: int = 0
    unknown: Mapping[str, str] = field(default_factory=dict)

    def of(self, *fates: Fate) -> list[Outcome]:
        """The outcomes with one of these fates."""
        return [one for one in self.outcomes if one.fate in fates]

    def as_json(self) -> dict[str, Any]:
        """For `-o json`."""
        return {
            "pods": [one.as_json() for one in self.outcomes],
            "namespaces": [one.as_json() for one in self.slices],
            "unaffected": self.unaffected,
            "unknown": dict(self.unknown),
        }


def age(pod: Object) -> tuple[str, NamespacedName]:
    """The order of pods: the oldest first."""
    made = pod.metadata.creation_timestamp
    return (made.isoformat() if made else "", pod.key)


def forecast(before: World, changes: Iterable[Change]) -> Forecast:
    """What would happen after all of these changes."""
    world = before
    for change in changes:
        world = world.changed(change)
    outcomes: list[Outcome] = []
    waiting: list[tuple[Subject, str]] = []  # with the reason for which it left, if it did
    unaffected = 0
    for subject in before.subjects():
        departure = world.departure(subject) if subject.cluster else None
        if departure is None and subject.is_running:
            unaffected += 1
        elif departure is None:
            waiting.append((subject, ""))
        elif departure.fate is not Fate.MOVES:
            outcomes.append(Outcome(str(subject.key), departure.fate, subject.cluster, reason=departure.reason))
            world = world if departure.fate is Fate.STAYS else world.without(subject)
        else:
            waiting.append((subject, departure.reason))
            world = world.without(subject)
    for subject, reason in sorted(waiting, key=lambda one: one[0].is_running):  # those that wait already are first
        choice = world.choose(subject)
        outcomes.append(_outcome(subject, reason, choice))
        if choice.cluster:
            world = world.having(subject, choice)
    return Forecast(tuple(outcomes), tuple(world.slice_changes(before)), unaffected, dict(before.unknown()))


def _outcome(subject: Subject, reason: str, choice: Choice) -> Outcome:
    name, now = str(subject.key), subject.cluster if subject.is_running else ""
    if choice.cluster:
        fate = Fate.MOVES if subject.is_running else Fate.STARTS
        return Outcome(name, fate, now, choice.cluster, reason)
    fate = Fate.UNKNOWN if choice.unknown else Fate.PENDS
    return Outcome(name, fate, now, reason="; ".join(filter(None, (reason, choice.reason))))
