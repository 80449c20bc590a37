"""Placement policies: each orders the candidate clusters for a namespace's next slice; the first one gets it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hansa.kube.language import selectors
from hansa.model import annotation_json
from hansa.runtime import errors

LONGEST: Final = 4096  # characters of a policy
MOST: Final = 64  # preferences of a policy: each is matched with each cluster of the pool


class PolicyError(errors.HansaError, ValueError):
    """A policy is not valid."""


@dataclass(frozen=True, slots=True)
class SliceCandidate:
    """A cluster that could have one more slice of a namespace."""

    cluster: str
    labels: Mapping[str, str]
    slices: int  # of this namespace that it has
    room: int  # more slices that it has capacity for
    weight: int = 0  # of the policy, by labels


Order = tuple[int | str, ...]


class Policy(Protocol):
    """An order of candidate clusters."""

    def weight(self, labels: Mapping[str, str]) -> int:
        """The weight of a cluster, computed once for each plan."""

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        """The sort key of a candidate while `rest` slices are not placed; the lowest is first.

        It depends on `rest` only by whether the candidate has room for it.
        """


class _Unweighted:
    """A policy for which all clusters weigh the same."""

    __slots__ = ()

    def weight(self, _labels: Mapping[str, str]) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Spread(_Unweighted):
    """Over as many clusters as possible, evenly."""

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        return (candidate.slices, -candidate.room, candidate.cluster)


@dataclass(frozen=True, slots=True)
class Pack(_Unweighted):
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

    def weight(self, labels: Mapping[str, str]) -> int:
        return sum(weight for selector, weight in self.preferences if selector.matches(labels))

    def order(self, candidate: SliceCandidate, rest: int) -> Order:
        return (-candidate.weight, *Spread().order(candidate, rest))


def parse(text: str) -> Policy:
    """Parse a policy: "spread", "pack", or "prefer region=eu:10; tier in (gold,silver):5"."""
    if len(text) > LONGEST:
        raise _invalid(text, f"it has {len(text)} characters, more than the maximum of {LONGEST}")
    name, _, rest = text.strip().partition(" ")
    match name, rest.strip():
        case "spread", "":
            return Spread()
        case "pack", "":
            return Pack()
        case "prefer", preferences if preferences:
            parts = preferences.split(";")
            if len(parts) > MOST:
                raise _invalid(text, f"it has {len(parts)} preferences, more than the maximum of {MOST}")
            return Prefer(tuple(_preference(text, part) for part in parts))
        case _:
            raise _invalid(text, "use spread, pack, or prefer with labels, such as prefer region=eu:10")


def _preference(text: str, part: str) -> tuple[selectors.Selector, int]:
    labels, _, weight = part.rpartition(":")
    try:
        return selectors.parse(labels.strip()), int(weight)
    except ValueError:
        raise _invalid(text, f'"{part.strip()}" is not a label selector with a weight, such as region=eu:10') from None


def _invalid(text: str, reason: str) -> PolicyError:
    return PolicyError(f'invalid placement policy "{annotation_json.shown(text)}": {reason}')
