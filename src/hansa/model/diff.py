"""JSON merge patches (RFC 7386) between the current and the desired state of an object. Pure."""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from hansa.kube.objects import Object
from hansa.model import stamp


def merge_patch(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one to the other; empty if they are the same. Lists are replaced whole; null is absent."""
    patch: dict[str, Any] = {key: None for key, old in have.items() if old is not None and want.get(key) is None}
    for key, value in want.items():
        old = have.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif old != value and value is not None:
            patch[key] = value
    return patch


def metadata_patch(have: Object, want: Object) -> dict[str, Any]:
    """The patch of labels and annotations. Keys that were never synced down are kept."""
    labels, annotations = stamp.carried(have)
    metadata = {
        "labels": _table_patch(have.labels, want.labels, labels),
        "annotations": _table_patch(have.annotations, want.annotations, annotations),
    }
    metadata = {name: patch for name, patch in metadata.items() if patch}
    return {"metadata": metadata} if metadata else {}


def labels_patch(have: Object, want: Object) -> dict[str, Any]:
    """The patch of labels of an object of ours, on which others are kept."""
    labels = _table_patch(have.labels, want.labels, frozenset())
    return {"metadata": {"labels": labels}} if labels else {}


def fields_patch(have: Object, want: Object, fields: Iterable[str]) -> dict[str, Any]:
    """The patch of top-level fields. Equal bytes are equal values, so most fields are never decoded."""
    changed = [name for name in fields if have.raw(name) != want.raw(name)]
    return merge_patch({name: have.get(name) for name in changed}, {name: want.get(name) for name in changed})


def _table_patch(have: Mapping[str, str], want: Mapping[str, str], carried: Set[str]) -> dict[str, str | None]:
    patch: dict[str, str | None] = {key: None for key in have if key in carried and key not in want}
    patch |= {key: value for key, value in want.items() if have.get(key) != value}
    return patch
