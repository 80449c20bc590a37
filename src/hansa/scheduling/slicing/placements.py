"""Placements: how many slices each cluster has of a namespace, as its annotation says it: {"r1":1,"r2":1}."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from hansa.model import capacity
from hansa.runtime import errors
from hansa.scheduling.slicing import slices

Placements = Mapping[str, int]  # slices by cluster, each at least one


class PlacementError(errors.HansaError, ValueError):
    """Placements cannot be read."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a namespace has: slices of a size, by cluster."""

    placements: Placements = field(default_factory=dict)
    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)

    def __len__(self) -> int:
        return sum(self.placements.values())


def read(text: str) -> Placements:
    """Placements from their annotation. Clusters with no slices are left out; nothing at all is no placements."""
    if not text.strip():
        return {}
    try:
        numbers = msgspec.json.decode(text, type=dict[str, int])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(text, str(error)) from None
    if any(number < 0 for number in numbers.values()):
        raise _unreadable(text, "a number of slices is below zero")
    return settled(numbers)


def spelled(placements: Placements) -> str:
    """Placements as their annotation has them; the same placements are the same text."""
    return msgspec.json.encode(settled(placements)).decode()


def settled(placements: Placements) -> dict[str, int]:
    """Sorted, and without clusters that have none."""
    return {cluster: number for cluster, number in sorted(placements.items()) if number}


def beyond(former: Holding, now: Holding) -> Holding:
    """What of a former holding is not in the one of now; all of it if slices have another size."""
    if former.slice != now.slice:
        return former
    less = {cluster: number - now.placements.get(cluster, 0) for cluster, number in former.placements.items()}
    return Holding({cluster: number for cluster, number in less.items() if number > 0}, former.slice)


def recorded(holding: Holding) -> str:
    """A holding as a text to be remembered, so that a change of the slice and an edit by hand are noticed later."""
    return msgspec.json.encode(
        {"placements": settled(holding.placements), "slice": capacity.spelled(dict(sorted(holding.slice.items())))}
    ).decode()


def remembered(text: str) -> Holding | None:
    """A holding that was recorded; None if nothing readable was."""
    try:
        record = msgspec.json.decode(text, type=_Record)
        return Holding(settled(record.placements), slices.read(msgspec.json.encode(record.slice).decode()))
    except (msgspec.DecodeError, slices.SliceError):
        return None


class _Record(msgspec.Struct, frozen=True):
    placements: dict[str, int]
    slice: dict[str, str]


def _unreadable(text: str, why: str) -> PlacementError:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return PlacementError(f'the placements \'{shown}\' cannot be read: {why}; write them like {{"r1": 1, "r2": 1}}')
