"""Taints of nodes and the tolerations of pods, as kube-scheduler and the taint eviction controller read them.
The operators Lt and Gt match nothing: they are alpha in Kubernetes 1.35 and off unless somebody turns them on."""

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
"""The effects that keep a new pod off a node."""


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A node's reason to keep pods away. Decodes from the API's form."""

    key: str
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.value else ''}{self.value}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A pod's consent to taints; what is left empty fits all. Decodes from the API's form."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether it consents to this taint."""
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
    """The taints of these effects that none of the tolerations consents to."""
    return tuple(taint for taint in taints if taint.effect in effects and _consent(taint, tolerations) is None)


def stay(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """For how many seconds a pod may stay on a node with these taints: 0 is not at all, infinity is for good."""
    evicting = (taint for taint in taints if taint.effect == Effect.NO_EXECUTE)
    return min((_seconds(_consent(taint, tolerations)) for taint in evicting), default=math.inf)


def _consent(taint: Taint, tolerations: Sequence[Toleration]) -> Toleration | None:
    """The first toleration that fits: its time counts, even if a later one would allow more."""
    return next((toleration for toleration in tolerations if toleration.tolerates(taint)), None)


def _seconds(consent: Toleration | None) -> float:
    if consent is None:
        return 0
    return math.inf if consent.toleration_seconds is None else max(0, consent.toleration_seconds)
