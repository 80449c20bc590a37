"""What is known of one upper object and of its lower objects, at one moment. The only input of a decision."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys


class Key(NamedTuple):
    """Names an upper object: its cluster, its resource, its namespace and name."""

    cluster: str
    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}".replace(" /", " ") + f" of {self.cluster}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A side that cannot be seen now. It is not absent: all that is known is what was `last` seen there."""

    reason: str
    last: Object | None = None


Side = Object | None | Unknown


class Grade(IntEnum):
    """How much an upper object wants to be in a cluster."""

    PAST = 0  # it was there before: a copy may be left, which has to go before the chosen one comes
    CANDIDATE = 1  # a copy may be tried there, beside others
    CHOSEN = 2  # it is there that it lives


class Around(Protocol):
    """What else is known along a link, for steps that need more than the object itself. It reads caches only."""

    def upper(self, resource: Resource, place: Place) -> Object | None:
        """The upper object in this place, as far as it is known."""

    def lower(self, resource: Resource, place: Place) -> Object | None:
        """The copy of the upper object in this place, in the link's lower cluster."""

    def uppers(self, resource: Resource, namespace: str) -> Iterable[Object]:
        """The upper objects of one kind in a namespace; cluster-wide ones are in \"\"."""


class _Nothing:
    """Nothing is known around."""

    def upper(self, _resource: Resource, _place: Place) -> Object | None:
        return None

    def lower(self, _resource: Resource, _place: Place) -> Object | None:
        return None

    def uppers(self, _resource: Resource, _namespace: str) -> Iterable[Object]:
        return ()


NOTHING_AROUND: Around = _Nothing()


@dataclass(frozen=True, slots=True)
class Link:
    """One way from an upper cluster to a lower one. `upper_id` never changes; the others are our names for the two."""

    upper: str
    upper_id: str
    lower: str
    settings: Any = None  # what the mode's own steps need to know; its type is the mode's
    nodes: frozenset[str] = frozenset()  # the virtual nodes that stand for the lower cluster on this way
    around: Around = field(default=NOTHING_AROUND, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """One upper object, where it should be, and what is there.

    `links` leads to every lower cluster that can be meant; `lowers` has an entry for each that an intent names and for
    each that has an object of that name. `waits_for` tells what must be in a cluster before this object, in words.
    `lacks` tells what is not there above and must be, in words; it is told after `patience` seconds, as it often comes.
    `in_use` names the clusters where others read the copy, which then outlives the upper object: its name stays ours.
    `lingers` tells for how many seconds a copy that is not needed any more may stay in a cluster yet.
    `settled` names the clusters whose object was found to follow the upper one and did not change since, nor did that
    (compare `content` of both): what it should look like is not computed again.
    """

    key: Key
    upper: Side
    links: Mapping[str, Link] = field(default_factory=dict)
    lowers: Mapping[str, Side] = field(default_factory=dict)
    intents: Mapping[str, Grade] | Unknown = field(default_factory=dict)
    waits_for: Mapping[str, str] = field(default_factory=dict)
    lacks: str = ""
    patience: float = 0.0
    in_use: frozenset[str] = frozenset()
    lingers: Mapping[str, float] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()


def content(obj: Object) -> int:
    """A number that stays the same while nothing but the status changes: what the way down reads and writes."""
    if not obj.raw("status"):
        return hash((obj.uid, obj.version))
    annotations = dict(obj.annotations)
    annotations.pop(keys.LOWER_UID, None)  # it comes with the status
    described = tuple(obj.labels.items()), tuple(annotations.items())
    return hash((obj.uid, obj.metadata.generation, obj.is_leaving, described, obj.raw("spec")))
