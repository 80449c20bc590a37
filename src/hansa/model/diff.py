"""What has to be written to make one value another: JSON merge patches (RFC 7386) of what differs, nothing else."""

from collections.abc import Iterable, Mapping
from typing import Any

from hansa.kube.objects import Object
from hansa.model import keys


def merge_patch(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch from one to the other; empty if they are the same. Lists are replaced whole."""
    patch: dict[str, Any] = {key: None for key in have if key not in want}
    for key, value in want.items():
        old = have.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[key] = inner
        elif old != value or key not in have:
            patch[key] = value
    return patch


def metadata_patch(have: Object, want: Object) -> dict[str, Any]:
    """The patch of labels and annotations. Keys that we never carried belong to somebody else and stay."""
    carried = set(have.annotations.get(keys.CARRIED, "").split(","))
    metadata = {}
    for name in ("labels", "annotations"):
        there, wanted = getattr(have, name), getattr(want, name)
        change: dict[str, Any] = {k: v for k, v in wanted.items() if there.get(k) != v}
        change |= {k: None for k in there if k in carried and k not in wanted}
        if change:
            metadata[name] = change
    return {"metadata": metadata} if metadata else {}


def fields_patch(have: Object, want: Object, fields: Iterable[str]) -> dict[str, Any]:
    """The patch of top-level fields. Equal bytes are equal values, so most fields are never decoded."""
    changed = [name for name in fields if have.raw(name) != want.raw(name)]
    return merge_patch(_present(have, changed), _present(want, changed))


def _present(obj: Object, fields: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in fields if (value := obj.get(name)) is not None}
