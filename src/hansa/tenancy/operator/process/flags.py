"""Reads the flags of a ClusterVersion's containers, for programs that run as processes instead of in pods. Pure.

Flags that name files, addresses or stores are not taken over: `commands` sets them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

FLAG = re.compile(r"--([a-z0-9][a-z0-9.-]*)(?:=(.*))?", re.DOTALL)
HELP = re.compile(r"^\s+(?:-\w, )?--([a-z0-9][a-z0-9.-]*)", re.MULTILINE)
INSIDE_POD = re.compile(r"\$\(\w+\)|(^|[=,:])/")  # a variable of the pod, or a file in its image or volumes


def honoured(container: Mapping[str, Any], *, known: Iterable[str], ours: Iterable[str]) -> dict[str, str]:
    """The flags of a container that the binary supports, that we do not set, and that refer to nothing inside a pod."""
    known, ours = set(known), set(ours)
    return {
        name: value
        for name, value in of_container(container).items()
        if name in known and name not in ours and not INSIDE_POD.search(value)
    }


def of_container(container: Mapping[str, Any]) -> dict[str, str]:
    """All flags of a container."""
    return parse([*(container.get("command") or [])[1:], *(container.get("args") or [])])


def parse(words: Iterable[str]) -> dict[str, str]:
    """Flags by name, from `--name=value`, `--name value` and `--name`, which is `true`."""
    found: dict[str, str] = {}
    pending = ""
    for word in (word.strip() for word in words):
        match = FLAG.fullmatch(word)
        if match:
            pending = match[1] if match[2] is None else ""
            found[match[1]] = "true" if match[2] is None else match[2]
        elif pending:
            found[pending], pending = word, ""
    return found


def known(help_text: str) -> frozenset[str]:
    """The names of all flags in a program's --help."""
    return frozenset(HELP.findall(help_text))


def argv(flags: Mapping[str, str]) -> list[str]:
    """The flags as arguments of a command line."""
    return [f"--{name}={value}" for name, value in flags.items()]
