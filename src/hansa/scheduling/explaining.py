"""Why a pod is or is not in each cluster, and what would make it fit. Pure.

Used by `hansa explain`, with the code that schedulers decide with.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hansa.scheduling import counterfactual, evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.counterfactual import Remedy
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Refusal


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster where a pod may run: the virtual node that represents it, the pod's request there, and the view."""

    node: str
    request: PodRequest
    view: ClusterView


@dataclass(frozen=True, slots=True)
class Answer:
    """What one cluster says: the node that fits, or the refusal and what would change it."""

    cluster: str
    node: str
    fits_on: str = ""
    refusal: Refusal | None = None
    remedy: Remedy | None = None

    def __str__(self) -> str:
        if self.refusal is None:
            return f"fits on node {self.fits_on}"
        reasons = "; ".join(map(str, self.refusal.reasons)) or "no nodes"
        return f"{reasons}; {self.remedy}" if self.remedy else reasons

    def as_json(self) -> dict[str, Any]:
        """The answer for `-o json`."""
        found: dict[str, Any] = {"cluster": self.cluster, "node": self.node, "fits": self.refusal is None}
        if self.refusal is None:
            return found | {"fitsOn": self.fits_on}
        found["reasons"] = [str(reason) for reason in self.refusal.reasons]
        return found | ({"wouldFitIf": str(self.remedy)} if self.remedy else {})


def answers(candidates: Iterable[Candidate]) -> list[Answer]:
    """The answer of each cluster, by name."""
    return sorted(map(_answer, candidates), key=lambda one: (one.cluster, one.node))


def _answer(candidate: Candidate) -> Answer:
    view = candidate.view
    result = evaluation.evaluate(candidate.request, view)
    if not isinstance(result, Refusal):
        return Answer(view.cluster, candidate.node, result.node)
    remedy = None if view.closed else counterfactual.remedy(candidate.request, view)
    return Answer(view.cluster, candidate.node, refusal=result, remedy=remedy)
