"""Policies: which cluster gets a namespace's next slice. Each orders candidates; the first in the order gets it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hansa.kube.language import selectors
from hansa.runtime import errors


class PolicyError(errors.HansaError, ValueError):
    """A policy cannot be read."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that could have one more slice of a namespace."""

    cluster: str
    labels: Mapping[str, str]
    slices: int  # that it has of this namespace
    room: int  # that it could have besides


Order = tuple[int | str, ...]


class Policy(Protocol):
    """Where slices rather go."""

    def order(self, candidate: Candidate, rest: int) -> Order:
        """The place of a candidate when so many slices are still to be placed; the lowest is first."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Over as many clusters as possible, evenly."""

    def order(self, candidate: Candidate, rest: int) -> Order:
        return (candidate.slices, -candidate.room, candidate.cluster)


@dataclass(frozen=True, slots=True)
class Pack:
    """Into as few clusters as possible: where some are already, then the tightest that takes all, then the largest."""

    def order(self, candidate: Candidate, rest: int) -> Order:
        takes_all = candidate.room >= rest
        return (
            not candidate.slices,
            not takes_all,
            candidate.room if takes_all else -candidate.room,
            candidate.cluster,
        )


@dataclass(frozen=True, slots=True)
class Prefer:
    """Where labels are liked most, by the sum of the weights of those that match; evenly among equals."""

    likes: tuple[tuple[selectors.Selector, int], ...]

    def order(self, candidate: Candidate, rest: int) -> Order:
        weight = sum(weight for selector, weight in self.likes if selector.matches(candidate.labels))
        return (-weight, *Spread().order(candidate, rest))


def read(text: str) -> Policy:
    """Read a policy: "spread", "pack", or "prefer region=eu:10; tier in (gold,silver):5"."""
    word, _, rest = text.strip().partition(" ")
    match word, rest.strip():
        case "spread", "":
            return Spread()
        case "pack", "":
            return Pack()
        case "prefer", likes if likes:
            return Prefer(tuple(_like(text, part) for part in likes.split(";")))
        case _:
            raise _unreadable(text, "it must be spread, pack, or prefer with labels")


def _like(text: str, part: str) -> tuple[selectors.Selector, int]:
    labels, _, weight = part.rpartition(":")
    try:
        return selectors.parse(labels.strip()), int(weight)
    except ValueError:
        raise _unreadable(text, f'"{part.strip()}" is not a label selector with a weight, like region=eu:10') from None


def _unreadable(text: str, why: str) -> PolicyError:
    return PolicyError(f'the placement policy "{text}" cannot be read: {why}')
