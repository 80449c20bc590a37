"""A plan: what to write and to report so that an upper object and its lower ones agree. The engine carries it out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import limits
from hansa.model.limits import Amounts, Limit, Room
from hansa.model.pair import Key


class Reason(StrEnum):
    """Why something is written: a label of the metric hansa_writes_total."""

    PLACED = "placed"  # the object is placed in this cluster
    CHANGED = "changed"  # the upper object changed, or its copy did
    STATUS = "status"  # the lower object's status, metadata or node, synced up
    REFUSED = "refused"  # the copy was refused, by a restriction or by the lower cluster
    NOT_PLACED = "not-placed"  # the object is no longer placed in this cluster, or is being deleted
    FINISHED = "finished"  # the upper object is finished
    FORMER = "former"  # a copy of a former object of the same name
    EVICTED = "evicted"  # the lower cluster is going away
    LOST = "lost"  # the lower object was deleted by another client
    RELEASED = "released"  # no lower object is left
    HELD = "held"  # a finalizer must be there before the first copy


@dataclass(frozen=True, slots=True)
class Create:
    """Create a lower object."""

    cluster: str
    obj: Object
    reason: Reason


@dataclass(frozen=True, slots=True)
class Patch:
    """Patch an object, or a subresource of it."""

    cluster: str
    obj: Object
    patch: Mapping[str, Any]
    reason: Reason
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object, by its uid."""

    cluster: str
    obj: Object
    reason: Reason
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind an upper pod to a node."""

    cluster: str
    obj: Object
    node: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class SetFinalizers:
    """Replace the finalizers of an upper object, in exactly the version that was read."""

    cluster: str
    obj: Object
    finalizers: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Conflict:
    """A lower object of that name is not ours: an Event is recorded, nothing is written."""

    cluster: str
    obj: Object
    message: str


def conflict_message(resource: Resource, name: NamespacedName, cluster: str) -> str:
    """The message of the Event about a lower object that is not ours."""
    return f"{resource} {name} already exists in {cluster} and is not managed by Hansa; delete or rename it"


@dataclass(frozen=True, slots=True)
class Refuse:
    """The upper object is not synced to this cluster: an Event is recorded, nothing is written there."""

    cluster: str
    message: str


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The copy would exceed a limit: an Event is recorded, and the key is requeued when there is room."""

    cluster: str
    limit: Limit
    needs: Amounts
    room: Room

    @property
    def message(self) -> str:
        return limits.message(self.limit, self.room, self.needs, self.cluster)


@dataclass(frozen=True, slots=True)
class Read:
    """The upper object is outlined, and its content is needed: it is read, and decided about again."""

    cluster: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done yet. The key is requeued after `seconds`, or when the upper object `until` changes."""

    message: str
    until: Key | None = None
    seconds: float = 0.0


Write = Create | Patch | Delete | Bind | SetFinalizers
Action = Write | Conflict | Refuse | OverLimit | Read | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. Actions on one cluster are in order; those on several clusters may be done concurrently."""

    actions: tuple[Action, ...] = ()

    @property
    def writes(self) -> tuple[Write, ...]:
        """The actions that write to an API server."""
        return tuple(a for a in self.actions if isinstance(a, Create | Patch | Delete | Bind | SetFinalizers))
