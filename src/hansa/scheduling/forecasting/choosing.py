"""Chooses among candidates for a forecast: the best of those that fit, or the reasons of all. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from hansa.scheduling import evaluation, explaining
from hansa.scheduling.explaining import Answer, Candidate
from hansa.scheduling.forecasting.forecast import Choice
from hansa.scheduling.verdict import Fit


@dataclass(frozen=True, slots=True)
class _Found:
    score: int
    choice: Choice


def best(candidates: Iterable[Candidate]) -> Choice:
    """The choice; without one, clusters that cannot be read make it unknown."""
    asked, found = list(candidates), []
    for one in asked:
        is_barred = one.unknown or (one.gate is not None and one.gate.reasons())
        result = None if is_barred else evaluation.evaluate(one.request, one.view)
        if isinstance(result, Fit):
            found.append(_Found(result.score, Choice(one.view.cluster, result.node, one.node)))
    if found:
        return min(found, key=lambda one: (-one.score, one.choice.cluster, one.choice.virtual_node)).choice
    return refused(explaining.answer(one, is_remedied=False) for one in asked)


def refused(answers: Iterable[Answer]) -> Choice:
    """The choice of no cluster, with what each said."""
    said = [(one.cluster, one) for one in answers]
    unknown = tuple(cluster for cluster, one in said if one.unknown)
    return Choice(
        reason=". ".join(f"{cluster}: {one.verdict}" for cluster, one in said) or "no clusters", unknown=unknown
    )
