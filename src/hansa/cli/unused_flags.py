"""Flags and feature gates of upstream programs that have no effect: they are accepted, and logged once.

Command lines of upstream manifests start our programs as they are. A flag that no program has is still an error.
"""

import argparse
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hansa.cli import go_values

log = logging.getLogger(__name__)
_GIVEN: Final = "unused_given"


@dataclass(frozen=True, slots=True)
class UnusedFlag:
    """A flag without effect, and why."""

    name: str
    reason: str
    is_boolean: bool = False


def add_to(parser: argparse.ArgumentParser, program: str, flags: Iterable[UnusedFlag]) -> None:
    """Accept these flags of an upstream program."""
    group = parser.add_argument_group(
        "compatibility", f"Other flags of {program} are accepted, have no effect, and are logged at the start."
    )
    for flag in flags:
        add_one(group, flag)


def add_one(group: Any, flag: UnusedFlag) -> None:
    """Accept one flag, without a line in the help."""
    value = {"nargs": "?", "type": go_values.boolean} if flag.is_boolean else {}
    group.add_argument(flag.name, action=_Note, reason=flag.reason, dest=_GIVEN, help=argparse.SUPPRESS, **value)


def note(arguments: argparse.Namespace, given: str, reason: str) -> None:
    """Note that something on the command line has no effect."""
    before: Mapping[str, str] = getattr(arguments, _GIVEN, None) or {}
    setattr(arguments, _GIVEN, {**before, given: reason})


def given(arguments: argparse.Namespace) -> Mapping[str, str]:
    """What was given without effect, each with the reason."""
    return getattr(arguments, _GIVEN, None) or {}


def report(arguments: argparse.Namespace) -> None:
    """Log each of them once."""
    for name, reason in given(arguments).items():
        log.warning("flag has no effect", extra={"flag": name, "reason": reason})


class _Note(argparse.Action):
    def __init__(self, *arguments: Any, reason: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.reason = reason

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        _values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        note(namespace, option_string or self.dest, self.reason)
