"""The fence of a super cluster: when its pods have to end, by observed renewals and the local clock."""

import pytest

from hansa.kube.objects import Object
from hansa.tenancy.pool import fence
from hansa.tenancy.pool.fence import AgentPresence, Fence, Terms

HELD = Terms("first", duration=60.0, grace=30.0, meta="m")
LATER = Terms("second", duration=60.0, grace=30.0, meta="m")


def looking(*looks: tuple[float, Terms | None]) -> Fence:
    """What is known after these looks."""
    seen = Fence()
    for now, found in looks:
        seen = seen.observed(found, now)
    return seen


def steadily(found: Terms, first: float, last: float) -> list[tuple[float, Terms]]:
    """A look every five seconds."""
    return [(float(now), found) for now in range(int(first), int(last) + 1, 5)]


def a_lease(renewed: str = "first", **annotations: str) -> Object:
    patch = fence.renewal("me", renewed, lost_after=59.5, grace=30, meta="m")
    patch["metadata"]["annotations"] |= {
        f"hansa.dev/{key.replace('_', '-')}": text for key, text in annotations.items()
    }
    return Object.of({"kind": "Lease", **patch})


def test_without_a_lease_nothing_ever_ends():
    assert looking((0.0, None), (5.0, None)).ends == float("inf")
    assert looking(*steadily(HELD, 0, 50), (55.0, None)).ends == float("inf"), "somebody deleted it"
    assert fence.terms(None) is None
    assert fence.terms(Object.of({"kind": "Lease", "metadata": {}})) is None, "nobody renewed it yet"


def test_pods_end_when_the_lease_was_seen_unchanged_for_as_long_as_it_holds():
    assert looking(*steadily(HELD, 0, 55)).ends == 60.0
    assert looking(*steadily(HELD, 0, 10), *steadily(LATER, 15, 70)).ends == 75.0


def test_a_short_time_without_sight_changes_nothing():
    assert looking(*steadily(HELD, 0, 20), *steadily(HELD, 35, 50)).ends == 60.0
    assert looking(*steadily(HELD, 0, 20), *steadily(LATER, 35, 50)).ends == 95.0


def test_who_could_not_look_for_long_gives_others_a_chance_to_come_back_first():
    blind = looking(*steadily(HELD, 0, 20), (500.0, HELD))
    assert blind.ends == 510.0, "those who renew have one turn"
    assert looking(*steadily(HELD, 0, 20), (500.0, HELD), (505.0, LATER)).ends == 565.0


def test_a_renewal_that_came_unseen_counts_from_when_it_was_seen_not_to_have_come():
    blind = looking(*steadily(HELD, 0, 20), *steadily(LATER, 50, 70))
    assert blind.ends == 80.0, "it may have come at second 21"


def test_a_restarted_agent_continues_from_the_age_noted_in_the_lease():
    seen = looking(*steadily(HELD, 0, 40))
    lease = a_lease(fence_seen=fence.note(HELD, seen.age(40.0))["metadata"]["annotations"]["hansa.dev/fence-seen"])
    terms = fence.terms(lease)
    assert terms == HELD
    assert Fence().observed(terms, 1000.0, age=fence.noted_age(lease)).ends == 1020.0
    assert fence.noted_age(a_lease("another", fence_seen="first 40.0")) == 0.0
    assert Fence().observed(HELD, 1000.0, age=fence.noted_age(a_lease())).ends == 1060.0
    over = a_lease(fence_seen="first 61.3")
    assert Fence().observed(HELD, 1000.0, age=fence.noted_age(over)).ends < 1000.0, "in the middle of its work"


@pytest.mark.parametrize(
    ("spec", "metadata", "phase", "grace"),
    [
        ({}, {}, "Running", 15),
        ({"terminationGracePeriodSeconds": 5}, {}, "Running", 5),
        ({"terminationGracePeriodSeconds": 600}, {}, "Pending", 15),
        ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 600}, "Running", 15),
        ({}, {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 10}, "Running", None),
        ({}, {}, "Succeeded", None),
    ],
)
def test_pods_get_their_own_grace_but_not_more_than_is_left(spec, metadata, phase, grace):
    pod = Object.of({"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}})
    assert fence.pod_grace(pod, HELD.pod_seconds) == grace


def test_an_agent_is_there_while_its_note_changes():
    agent = AgentPresence(120.0)
    for now, note, is_present in (
        (0.0, "", False),
        (10.0, "first 0.0", True),
        (130.0, "first 0.0", True),
        (131.0, "first 0.0", False),
        (140.0, "second 0.0", True),
        (141.0, "", False),
    ):
        agent.observe(note, now)
        assert agent.is_present is is_present, now
