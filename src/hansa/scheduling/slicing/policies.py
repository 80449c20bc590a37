"""Placement policies: each orders the candidate clusters for a namespace's next slice; the first one gets it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hansa.kube.language import selectors
from hansa.runtime import errors


class PolicyError(errors.HansaError, ValueError):
    """A policy is not valid."""


@dataclass(frozen=True, slots=True)
class SliceCandidate:
    """A cluster that could have one more slice of a namespace."""

    cluster: str
    labels: Mapping[str, str]
    slices: int  # of this namespace that it has
    room: int  # more slices that it has capacity for


Order = tuple[int | str, ...]


class Policy(Protocol):
    """An order of candidate clusters."""

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        """The sort key of a candidate while `rest` slices are not placed; the lowest is first."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Over as many clusters as possible, evenly."""

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        return (candidate.slices, -candidate.room, candidate.cluster)


@dataclass(frozen=True, slots=True)
class Pack:
    """Into as few clusters as possible: those with slices, then the smallest that fits all, then the largest."""

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        takes_all = candidate.room >= rest
        return (
            not candidate.slices,
            not takes_all,
            candidate.room if takes_all else -candidate.room,
            candidate.cluster,
        )


@dataclass(frozen=True, slots=True)
class Prefer:
    """By labels of clusters: the highest sum of weights of matching selectors first, evenly among equals."""

    preferences: tuple[tuple[selectors.Selector, int], ...]

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        weight = sum(weight for selector, weight in self.preferences if selector.matches(candidate.labels))
        return (-weight, *Spread().order(candidate, rest))


def parse(text: str) -> Policy:
    """Parse a policy: "spread", "pack", or "prefer region=eu:10; tier in (gold,silver):5"."""
    name, _, rest = text.strip().partition(" ")
    match name, rest.strip():
        case "spread", "":
            return Spread()
        case "pack", "":
            return Pack()
        case "prefer", preferences if preferences:
            return Prefer(tuple(_preference(text, part) for part in preferences.split(";")))
        case _:
            raise _invalid(text, "use spread, pack, or prefer with labels, such as prefer region=eu:10")


def _preference(text: str, part: str) -> tuple[selectors.Selector, int]:
    labels, _, weight = part.rpartition(":")
    try:
        return selectors.parse(labels.strip()), int(weight)
    except ValueError:
        raise _invalid(text, f'"{part.strip()}" is not a label selector with a weight, such as region=eu:10') from None


def _invalid(text: str, reason: str) -> PolicyError:
    return PolicyError(f'invalid placement policy "{text}": {reason}')
