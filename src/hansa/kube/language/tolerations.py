"""Taints of nodes and tolerations of pods, as kube-scheduler and the taint eviction controller evaluate them.

The operators Lt and Gt match nothing: they are alpha in Kubernetes 1.35 and disabled by default.
"""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec


class Effect(StrEnum):
    """What a taint does to pods that don't tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


REPELLING: Final = frozenset({Effect.NO_SCHEDULE, Effect.NO_EXECUTE})
"""The effects that prevent the scheduling of a new pod on a node."""


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a node. Decodes from the API's form."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A toleration of a pod; an empty key or effect matches all. Decodes from the API's form."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether it matches this taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return self.value == taint.value
            case _:
                return False


def untolerated(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], *, effects: frozenset[Effect] = REPELLING
) -> tuple[Taint, ...]:
    """The taints of these effects that no toleration matches."""
    return tuple(taint for taint in taints if taint.effect in effects and _first_match(taint, tolerations) is None)


def seconds_until_eviction(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """The seconds until a pod is evicted from a node with these taints: 0 is at once, infinity is never."""
    evicting = (taint for taint in taints if taint.effect == Effect.NO_EXECUTE)
    return min((_seconds(_first_match(taint, tolerations)) for taint in evicting), default=math.inf)


def _first_match(taint: Taint, tolerations: Sequence[Toleration]) -> Toleration | None:
    """The first toleration that matches: its seconds count, even if a later one has more."""
    return next((toleration for toleration in tolerations if toleration.tolerates(taint)), None)


def _seconds(toleration: Toleration | None) -> float:
    if toleration is None:
        return 0
    return math.inf if toleration.toleration_seconds is None else max(0, toleration.toleration_seconds)
