"""JSON patches (RFC 6902): the operations that turn one JSON object into another. Pure.

Used for AdmissionReview responses, whose only patch type it is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def between(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[Operation]:
    """The operations, in order. Objects are compared field by field, lists are replaced whole."""
    for name, old in before.items():
        pointer = _pointer(path, name)
        if name not in after:
            yield {"op": "remove", "path": pointer}
        elif isinstance(old, Mapping) and isinstance(after[name], Mapping):
            yield from between(old, after[name], pointer)
        elif old != after[name]:
            yield {"op": "replace", "path": pointer, "value": after[name]}
    for name, new in after.items():
        if name not in before:
            yield {"op": "add", "path": _pointer(path, name), "value": new}


def _pointer(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
