"""A plan: what to write and what to tell so that an upper object and its lower ones agree. The engine writes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hansa.kube.objects import Object
from hansa.model.pair import Key


@dataclass(frozen=True, slots=True)
class Create:
    """Make a lower object."""

    cluster: str
    obj: Object
    reason: str


@dataclass(frozen=True, slots=True)
class Patch:
    """Change fields of an object that is there; with a subresource, that part of it."""

    cluster: str
    obj: Object
    patch: Mapping[str, Any]
    reason: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object: this very one, by its uid."""

    cluster: str
    obj: Object
    reason: str
    grace: int | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A lower object of that name belongs to somebody else. It is told, and never written."""

    cluster: str
    obj: Object
    reason: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Tell an upper pod on which node it runs."""

    cluster: str
    obj: Object
    node: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The upper object may not travel to this cluster. It is told, and nothing is written there."""

    cluster: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done yet; what it waits for will wake it: that upper object's next change, or so many seconds."""

    reason: str
    until: Key | None = None
    seconds: float = 0.0


Write = Create | Patch | Delete | Bind
Action = Write | Conflict | Refuse | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. Actions on one cluster are in order; those on several clusters may be done side by side."""

    actions: tuple[Action, ...] = ()

    @property
    def writes(self) -> tuple[Write, ...]:
        """The actions that write to a server."""
        return tuple(a for a in self.actions if isinstance(a, Create | Patch | Delete | Bind))
