"""What `hansa status` says about one topic of one cluster: a table, with a problem per row or none. Pure."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

MOST: Final = 2000  # objects per list; of what there is more, only the first are read

_UNITS: Final = ((86400 * 2, 86400, "d"), (3600 * 2, 3600, "h"), (60 * 2, 60, "m"), (0, 1, "s"))


@dataclass(frozen=True, slots=True)
class Row:
    """One object: its cells, in the order of the columns, and its problem as a sentence; "" if there is none."""

    cells: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One topic. `unread` says why it is unknown or incomplete; it counts as a problem."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    unread: str = ""

    @property
    def problems(self) -> list[str]:
        """All problems, each with the name of its object, which is the first cell."""
        found = [f"{row.cells[0]}: {row.problem}" for row in self.rows if row.problem]
        return [*found, self.unread] if self.unread else found

    def cut(self, has_more: bool) -> "Section":
        """The section, with the remark that it is incomplete if there are more objects than were read."""
        return replace(self, unread=f"only the first {MOST} objects were read") if has_more else self


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The topics of one cluster. `unreachable` says why nothing of it is known."""

    cluster: str
    server: str = ""
    version: str = ""
    sections: tuple[Section, ...] = ()
    unreachable: str = ""

    @property
    def problems(self) -> list[str]:
        """All problems, each with the name of its topic."""
        if self.unreachable:
            return [self.unreachable]
        return [f"{section.title}: {problem}" for section in self.sections for problem in section.problems]


def moment(text: object) -> datetime.datetime | None:
    """A time of an object; None if there is none or it cannot be read."""
    try:
        found = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


def seconds_since(text: object, now: datetime.datetime) -> float | None:
    """Seconds since a time of an object; clocks of machines may differ, so that it is never negative."""
    found = text if isinstance(text, datetime.datetime) else moment(text)
    return None if found is None else max(0.0, (now - found).total_seconds())


def age(seconds: float | None) -> str:
    """An age as kubectl prints it, in one unit."""
    if seconds is None:
        return "never"
    seconds = max(0.0, seconds)
    return next(f"{int(seconds // size)}{unit}" for least, size, unit in _UNITS if seconds >= least)


def conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions of a status, by type."""
    return {str(one.get("type")): one for one in status.get("conditions") or () if isinstance(one, dict)}


def said(condition: Mapping[str, Any]) -> str:
    """The reason and message of a condition."""
    return ": ".join(str(condition[part]) for part in ("reason", "message") if condition.get(part)) or "no reason given"
