"""What `hansa doctor` finds: what it is, why it matters, and the command or setting that fixes it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    UNKNOWN = "unknown"  # it could not be examined
    WARNING = "warning"  # it works, and may not tomorrow
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. Those that are OK need no reason and no remedy."""

    check: str
    level: Level
    what: str
    why: str = ""
    remedy: str = ""


def fine(check: str, what: str) -> Finding:
    """A finding that is OK."""
    return Finding(check, Level.OK, what)


def warning(check: str, what: str, *, why: str, remedy: str) -> Finding:
    """Something that works, and may not tomorrow."""
    return Finding(check, Level.WARNING, what, why, remedy)


def problem(check: str, what: str, *, why: str, remedy: str) -> Finding:
    """Something that does not work."""
    return Finding(check, Level.PROBLEM, what, why, remedy)


def unknown(check: str, what: str, *, why: str, remedy: str) -> Finding:
    """Something that could not be examined."""
    return Finding(check, Level.UNKNOWN, what, why, remedy)


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings in one cluster."""

    cluster: str
    server: str
    findings: tuple[Finding, ...]

    @property
    def has_problem(self) -> bool:
        """Whether something does not work."""
        return any(one.level is Level.PROBLEM for one in self.findings)


def count(findings: Iterable[Finding], level: Level) -> int:
    """The number of findings of a level."""
    return sum(one.level is level for one in findings)
