"""JSON patches (RFC 6902), as admission answers them: what turns one JSON object into another. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def between(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[Operation]:
    """The operations, in order. Objects are compared field by field, lists are replaced whole."""
    for name, old in before.items():
        at = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in after:
            yield {"op": "remove", "path": at}
        elif isinstance(old, Mapping) and isinstance(after[name], Mapping):
            yield from between(old, after[name], at)
        elif old != after[name]:
            yield {"op": "replace", "path": at, "value": after[name]}
    for name, new in after.items():
        if name not in before:
            yield {"op": "add", "path": f"{path}/{name.replace('~', '~0').replace('/', '~1')}", "value": new}
