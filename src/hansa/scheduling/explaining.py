"""Why a pod is or is not in each cluster, and what would make it fit. Pure.

Used by `hansa explain`, with the code that schedulers decide with.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from hansa.scheduling import counterfactual, evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.counterfactual import Remedy
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Closed, Filtered, Reason, Refusal


class Change(Protocol):
    """Something that has to change until a pod fits."""

    def parts(self) -> tuple[str, ...]:
        """The changes, as the ends of sentences that begin with "if"."""

    def as_json(self) -> dict[str, Any]:
        """The changes for `-o json`."""


@dataclass(frozen=True, slots=True)
class Gate:
    """The virtual node that a pod has to match before its cluster is asked."""

    node: str
    request: PodRequest  # of the pod in the upper cluster
    view: ClusterView  # of the upper cluster

    def reasons(self) -> tuple[Reason, ...]:
        """Why the pod does not match it; empty if it does."""
        return tuple(map(self._named, evaluation.refusal_on(self.request, self.view, self.node)))

    def remedy(self) -> Remedy | None:
        """The fewest changes after which it does."""
        return counterfactual.remedy(self.request, self.view, only=self.node)

    def _named(self, reason: Reason) -> Reason:
        text = str(reason) if isinstance(reason, Filtered) else f"{reason} for its pods"
        return Closed(f"virtual node {self.node}: {text}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster where a pod may run: the virtual node that represents it, the pod's request there, and the view.

    `unknown` is why the cluster could not be read; empty if it could.
    """

    node: str
    request: PodRequest
    view: ClusterView
    gate: Gate | None = None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one cluster says: the node that fits, or the refusal and what would change it. Unknown is neither."""

    cluster: str
    node: str = ""
    fits_on: str = ""
    refusal: Refusal | None = None
    remedies: tuple[Change, ...] = ()  # all of them together
    unknown: str = ""
    present: str = field(default="", kw_only=True)  # the pod is in this cluster; what that says of it

    @property
    def fits(self) -> bool | None:
        """Whether the pod fits; None if that is unknown."""
        return None if self.unknown else self.refusal is None

    @property
    def remedy(self) -> str:
        """What would make it fit, as a sentence; empty if it fits or if nothing is known that would."""
        parts = dict.fromkeys(part for one in self.remedies for part in one.parts())
        return f"would fit if {' and '.join(parts)}" if parts else ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (self.present, self.verdict, self.remedy)))

    @property
    def verdict(self) -> str:
        """Whether it fits, or the reasons."""
        if self.unknown:
            return f"unknown: {self.unknown}"
        if self.refusal is None:
            return f"fits on node {self.fits_on}" if self.fits_on else "fits"
        return "; ".join(map(str, self.refusal.reasons)) or "no nodes"

    def as_json(self) -> dict[str, Any]:
        """The answer for `-o json`."""
        found: dict[str, Any] = {"cluster": self.cluster, "node": self.node, "fits": self.fits}
        if self.present:
            found["present"] = self.present
        if self.unknown:
            return found | {"unknown": self.unknown}
        if self.refusal is None:
            return found | {"fitsOn": self.fits_on}
        found["reasons"] = [str(reason) for reason in self.refusal.reasons]
        if not self.remedies:
            return found
        return found | {"wouldFitIf": self.remedy, "changes": [one.as_json() for one in self.remedies]}


def answers(candidates: Iterable[Candidate]) -> list[Answer]:
    """The answer of each cluster, by name."""
    return sorted(map(answer, candidates), key=lambda one: (one.cluster, one.node))


def answer(candidate: Candidate, *, is_remedied: bool = True) -> Answer:
    """The answer of one cluster; with `is_remedied` also what would make the pod fit, which looks at all its nodes."""
    view = candidate.view
    if candidate.unknown:
        return Answer(view.cluster, candidate.node, unknown=candidate.unknown)
    result = evaluation.evaluate(candidate.request, view)
    gate = None if view.closed else candidate.gate
    if gate is not None and isinstance(result, Refusal):  # what is missing below is missing in the sums as well
        gate = replace(gate, request=replace(gate.request, amounts={}))
    barred = () if gate is None else gate.reasons()
    if not barred and not isinstance(result, Refusal):
        return Answer(view.cluster, candidate.node, result.node)
    inside = result.reasons if isinstance(result, Refusal) else ()
    refusal = Refusal(view.cluster, (*barred, *inside))
    if not is_remedied:
        return Answer(view.cluster, candidate.node, refusal=refusal)
    remedies = _remedies(candidate, gate if barred else None, is_refused=isinstance(result, Refusal))
    return Answer(view.cluster, candidate.node, refusal=refusal, remedies=remedies)


def _remedies(candidate: Candidate, gate: Gate | None, *, is_refused: bool) -> tuple[Change, ...]:
    """What the virtual node and its cluster need together; nothing if one of them can't be helped."""
    found = []
    if is_refused:
        found.append(None if candidate.view.closed else counterfactual.remedy(candidate.request, candidate.view))
    if gate is not None:
        found.append(gate.remedy())
    known = [one for one in found if one is not None]
    return tuple(known) if len(known) == len(found) else ()
