"""One upper object and its lower objects at one moment: the only input of a decision.

Pairs are made by the engine's snapshots. Whatever a decision or a translation step reads is in here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeVar

from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.limits import Room
from hansa.model.lookups import NO_LOOKUPS, Lookups

S = TypeVar("S")


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
    """A side that cannot be read now. It is not absent: `last` is what was read there last."""

    reason: str
    last: Object | None = None


Side = Object | None | Unknown


class Grade(IntEnum):
    """How an upper object is placed in a cluster."""

    KEPT = -1  # a copy that is there stays as if it was chosen, and none is created
    PAST = 0  # it was there before; its copy must be deleted before one is created elsewhere
    CANDIDATE = 1  # a copy is tried there, beside other candidates
    CHOSEN = 2  # it runs there


@dataclass(frozen=True, slots=True)
class Link:
    """The way of an object from an upper cluster to a lower one. `upper_id` never changes, the names are ours.

    In a pair, a link also has the grade with which the object is placed there, and the objects that its rule reads.
    """

    upper: str
    upper_id: str
    lower: str
    settings: object = None  # what the mode's steps need; `settings_as` checks its type
    nodes: frozenset[str] = frozenset()  # the virtual nodes that represent the lower cluster
    grade: Grade = Grade.CHOSEN
    lookups: Lookups = field(default=NO_LOOKUPS, repr=False, hash=False)

    def settings_as(self, kind: type[S]) -> S:
        """The settings, which must be of this type."""
        if not isinstance(self.settings, kind):
            has = type(self.settings).__name__
            raise TypeError(f"link {self.upper} to {self.lower} has settings of type {has}, not {kind.__name__}")
        return self.settings


@dataclass(frozen=True, slots=True)
class Pair:
    """An upper object, where it is placed, and its lower objects. Equal pairs get equal plans."""

    key: Key
    upper: Side
    # The links to all clusters that `lowers` names.
    links: Mapping[str, Link] = field(default_factory=dict)
    # An entry for each cluster where the object is placed, and for each that has an object of its lower name.
    lowers: Mapping[str, Side] = field(default_factory=dict)
    intents: Mapping[str, Grade] | Unknown = field(default_factory=dict)
    # Why a copy can't be created in a cluster yet.
    blocked: Mapping[str, str] = field(default_factory=dict)
    # Clusters whose credentials may not read the object's kind, or one that it needs there, as a message.
    forbidden: Mapping[str, str] = field(default_factory=dict)
    # Of these: where an object that must exist first was refused, as a message.
    refused: Mapping[str, str] = field(default_factory=dict)
    # An upper object that must exist first and does not, as a message. It is reported after `patience` seconds:
    # objects of one manifest are created within moments.
    missing: str = ""
    patience: float = 0.0
    # Clusters where other objects read the copy: it then outlives its upper object.
    in_use: frozenset[str] = frozenset()
    # Clusters where a copy that is no longer placed is retained, and for how many seconds yet.
    retained: Mapping[str, float] = field(default_factory=dict)
    # Clusters whose copy was up to date before and where neither side changed since (compare `content`): the desired
    # copy is not computed again.
    in_sync: frozenset[str] = frozenset()
    # Further copies, of former upper objects of this name, where the lower name depends on the uid.
    leftovers: Mapping[str, tuple[Object, ...]] = field(default_factory=dict)
    # Uids of upper objects of this name that are gone and were deleted by force: their copies get no grace period.
    forced: frozenset[str] = frozenset()
    # Where the upper cluster has limits and a copy may be written: what is left of them for this object.
    room: Mapping[str, Room] = field(default_factory=dict)


def content(obj: Object) -> int:
    """A hash of what the way down reads and writes: all but the status."""
    if not obj.raw("status"):
        return hash((obj.uid, obj.version))
    annotations = dict(obj.annotations)
    annotations.pop(keys.LOWER_UID, None)  # written together with the status
    described = tuple(obj.labels.items()), tuple(annotations.items())
    return hash((obj.uid, obj.metadata.generation, obj.is_deleting, described, obj.raw("spec")))
