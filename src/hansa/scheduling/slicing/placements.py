"""Placements: the number of a namespace's slices in each cluster. Its annotation has them as JSON: {"r1":1,"r2":1}."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from hansa.model import annotation_json
from hansa.runtime import errors
from hansa.scheduling.slicing import slices

Placements = Mapping[str, int]  # slices by cluster, each at least one


class PlacementError(errors.HansaError, ValueError):
    """Placements are not valid."""


@dataclass(frozen=True, slots=True)
class Holding:
    """The slices of a namespace: their number by cluster, and their size."""

    placements: Placements = field(default_factory=dict)
    slice: slices.Slice = field(default_factory=lambda: slices.DEFAULT)

    def __len__(self) -> int:
        return sum(self.placements.values())


def parse(text: str) -> Placements:
    """Parse the annotation. Clusters with zero slices are left out; an empty text means no placements."""
    if not text.strip():
        return {}
    try:
        numbers = annotation_json.decode(text, dict[str, int])
    except annotation_json.AnnotationJsonError as error:
        raise _invalid(text, str(error)) from None
    if any(number < 0 for number in numbers.values()):
        raise _invalid(text, "a number of slices is negative")
    return normalized(numbers)


def encoded(placements: Placements) -> str:
    """The value of the annotation; equal placements give equal text."""
    return msgspec.json.encode(normalized(placements)).decode()


def normalized(placements: Placements) -> dict[str, int]:
    """Sorted by cluster, without clusters that have zero slices."""
    return {cluster: number for cluster, number in sorted(placements.items()) if number}


def excess(former: Holding, now: Holding) -> Holding:
    """The slices of a former holding that the current one doesn't have; all of them if the size differs."""
    if former.slice != now.slice:
        return former
    less = {cluster: number - now.placements.get(cluster, 0) for cluster, number in former.placements.items()}
    return Holding({cluster: number for cluster, number in less.items() if number > 0}, former.slice)


def _invalid(text: str, reason: str) -> PlacementError:
    shown = annotation_json.shown(text)
    return PlacementError(f'invalid placements "{shown}": {reason}; use a JSON object such as {{"r1": 1, "r2": 1}}')
