"""Values of flags as Go programs read them: booleans and durations.

Manifests and scripts of upstream programs are used as they are. Which flags exist is left to the commands.
"""

import argparse
import math
import re
from typing import Any, Final

TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(sorted(_UNITS, key=len, reverse=True))})")


def boolean(text: str) -> bool:
    """Parse a boolean as Go's strconv.ParseBool."""
    if text not in TRUE | FALSE:
        raise argparse.ArgumentTypeError(f'"{text}" is not a boolean: use true or false')
    return text in TRUE


def seconds(text: str) -> float:
    """Parse a duration: a number of seconds, or as Go writes it (1m30s, 500ms). Timers and Leases need a finite one."""
    value = _number(text)
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a duration: use a finite number of seconds, 0 or more, or a form such as 1m30s'
        )
    return value


def add_boolean(group: Any, *flags: str, default: bool, help: str, **more: Any) -> None:  # noqa: A002 - argparse's name
    """Add a flag that may be given as --flag or --flag=true|false. The default is added to the help."""
    group.add_argument(
        *flags,
        nargs="?",
        type=boolean,
        const=True,
        default=default,
        metavar="true|false",
        help=f"{help} (default {'true' if default else 'false'})",
        **more,
    )


def add_negatable(group: Any, flag: str, *, help: str) -> None:  # noqa: A002 - argparse's name
    """Add a boolean flag that is true by default, and --no-FLAG, which turns it off."""
    name = flag.removeprefix("--")
    add_boolean(group, flag, default=True, help=f"{help}; --no-{name} is {flag}=false")
    group.add_argument(
        f"--no-{name}",
        dest=name.replace("-", "_"),
        nargs="?",
        type=_opposite,
        const=False,
        help=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
    )


def _opposite(text: str) -> bool:
    return not boolean(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
