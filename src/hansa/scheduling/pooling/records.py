"""The last plan of each namespace, kept where tenants can't write it; the annotation of a namespace only shows it.

Plans are compared with annotations to detect edits by users. Storing the records is left to the program.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

import msgspec

from hansa.kube import objects
from hansa.model import capacity
from hansa.scheduling.slicing import placements, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.slices import Slice


class Record(Protocol):
    """The slices of a namespace by cluster, and the size of one."""

    @property
    def slices(self) -> Mapping[str, int]: ...
    @property
    def slice(self) -> Mapping[str, str]: ...


class Records(Protocol):
    """The records of all upper clusters."""

    def has_any(self, upper: str, /) -> bool:
        """Whether a namespace of the upper cluster was ever placed with records."""

    def of(self, upper: str, namespace: objects.Object, /) -> Record | None:
        """The record of a namespace."""

    def names(self, upper: str, /) -> Collection[str]:
        """The namespaces that have a record, also if they are gone."""

    async def write(
        self, upper: str, namespace: objects.Object, slices: Mapping[str, int], slice_: Mapping[str, str], /
    ) -> None:
        """Write the record of a namespace."""

    async def remove(self, upper: str, namespace: str, /) -> None:
        """Remove the record of a namespace, if there is one."""


def planned(record: Record | None) -> Holding | None:
    """The holding of a record; None if there is none, or if it is invalid."""
    if record is None:
        return None
    try:
        size = slices.parse(msgspec.json.encode(record.slice).decode())
    except slices.SliceError:
        return None
    return Holding(placements.normalized(record.slices), size)


def size(slice_: Slice) -> Mapping[str, str]:
    """The size of a slice as a record has it."""
    return capacity.resource_list(dict(sorted(slice_.items())))
