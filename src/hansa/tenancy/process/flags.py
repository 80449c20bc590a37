"""What a ClusterVersion's containers say about how their programs run, as far as it makes sense outside of a pod.

Where things are (files, addresses, stores) is decided here and not there. Pure.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

FLAG = re.compile(r"--([a-z0-9][a-z0-9.-]*)(?:=(.*))?", re.DOTALL)
HELP = re.compile(r"^\s+(?:-\w, )?--([a-z0-9][a-z0-9.-]*)", re.MULTILINE)
INSIDE_POD = re.compile(r"\$\(\w+\)|(^|[=,:])/")  # a variable of the pod, or a file in its image or volumes


def of(container: Mapping[str, Any], *, known: Iterable[str], ours: Iterable[str]) -> dict[str, str]:
    """The flags of a container that its program knows, that are not ours to decide, and that name nothing in a pod."""
    known, ours = set(known), set(ours)
    return {
        name: value
        for name, value in asked(container).items()
        if name in known and name not in ours and not INSIDE_POD.search(value)
    }


def asked(container: Mapping[str, Any]) -> dict[str, str]:
    """All flags of a container."""
    return parse([*(container.get("command") or [])[1:], *(container.get("args") or [])])


def parse(words: Iterable[str]) -> dict[str, str]:
    """Flags by name; one without a value is `true`, and a value may be the next word."""
    found: dict[str, str] = {}
    waiting = ""
    for word in (word.strip() for word in words):
        match = FLAG.fullmatch(word)
        if match:
            waiting = match[1] if match[2] is None else ""
            found[match[1]] = "true" if match[2] is None else match[2]
        elif waiting:
            found[waiting], waiting = word, ""
    return found


def known(help_text: str) -> frozenset[str]:
    """The flags that a program tells of."""
    return frozenset(HELP.findall(help_text))


def argv(flags: Mapping[str, str]) -> list[str]:
    """The words of a command line."""
    return [f"--{name}={value}" for name, value in flags.items()]
