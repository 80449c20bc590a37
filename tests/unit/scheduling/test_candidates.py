"""The choice among candidate clusters, with the reasons of those that are refused."""

from hansa.scheduling import candidates, pod_request
from hansa.scheduling.candidates import Candidate
from hansa.scheduling.verdict import Closed
from scheduling_things import a_node, a_pod, a_view

SMALL, LARGE = (a_view(a_node(f"{name}-1", cpu=cpu), cluster=name) for name, cpu in (("small", "1"), ("large", "8")))


def choose(pod, *tried):
    return candidates.choose(pod_request.of_pod(pod), tried)


def test_the_best_candidate_is_chosen_and_a_bonus_counts():
    pod = a_pod(cpu="500m")
    assert choose(pod, Candidate("small", SMALL), Candidate("large", LARGE)).best.cluster == "large"
    assert choose(pod, Candidate("small", SMALL, bonus=100), Candidate("large", LARGE)).best.cluster == "small"


def test_every_refused_candidate_is_in_the_verdict_with_its_reason():
    verdict = choose(
        a_pod(cpu="2"),
        Candidate("small", SMALL),
        Candidate("new", None),
        Candidate("avoided", LARGE, (Closed("found no node 3 s ago"),)),
    )
    assert verdict.best is None
    assert str(verdict).split(". ") == [
        "avoided: found no node 3 s ago",
        "new: not synced yet",
        "small: Insufficient cpu (requested 2, most free 1 on node small-1)",
    ]
