"""Chooses one of several candidate clusters for a pod; the verdict has the reasons of all that are refused. Pure.

Used by schedulers of pods. Which clusters are candidates, and limits such as slices, are left to the caller.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hansa.scheduling import evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.plugins import Profile
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Closed, Fit, Reason, Refusal, Verdict


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster to try. `view` is None while it is not synced; `reasons` refuse it without an evaluation."""

    cluster: str
    view: ClusterView | None
    reasons: tuple[Reason, ...] = ()
    bonus: int = 0  # added to the score of its best node


def choose(request: PodRequest, candidates: Iterable[Candidate], *, profile: Profile = evaluation.SPREADING) -> Verdict:
    """Evaluate a pod in every candidate."""
    return Verdict.of(_result(request, one, profile) for one in candidates)


def _result(request: PodRequest, candidate: Candidate, profile: Profile) -> Fit | Refusal:
    if candidate.reasons:
        return Refusal(candidate.cluster, candidate.reasons)
    if candidate.view is None:
        return Refusal(candidate.cluster, (Closed("not synced yet"),))
    result = evaluation.evaluate(request, candidate.view, profile=profile)
    return replace(result, score=result.score + candidate.bonus) if isinstance(result, Fit) else result
