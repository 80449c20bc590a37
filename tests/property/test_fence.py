"""The fence on random histories of renewals and checks, against an observer of both clusters."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hansa.tenancy.pool.fence import MISSED_CHECKS, RECOVERY_SECONDS, RENEWALS, Fence, Terms

DURATION = 60.0
LOOK = Terms("", DURATION, 30.0, "").check_seconds
TURN = max(DURATION / RENEWALS, RECOVERY_SECONDS)
PAUSES = st.floats(0.1, LOOK)  # from one look to the next
BLACKOUTS = st.floats(LOOK, 5 * DURATION)
RENEWED = st.floats(0.1, 2 * DURATION)  # from one renewal to the next


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """When it was renewed, and when it was seen."""
    renewed = [0.0, *itertools.accumulate(draw(st.lists(RENEWED, max_size=8)))]
    pauses = draw(st.lists(PAUSES | BLACKOUTS if draw(st.booleans()) else PAUSES, min_size=1, max_size=80))
    return renewed, [0.1, *itertools.accumulate(pauses, initial=0.2)]


def played(renewed: list[float], seen: list[float]) -> list[tuple[float, float, Fence]]:
    """Each look: when it was, which renewal was the last one then, and what is known after it."""
    known, story = Fence(), []
    for now in seen:
        last = max(one for one in renewed if one <= now)
        known = known.observed(Terms(f"{last}", DURATION, 30.0, ""), now)
        story.append((now, last, known))
    return story


@given(histories())
def test_pods_end_at_the_latest_one_look_after_the_lease_does_or_one_turn_after_sight_returns(history) -> None:
    for now, last, known in played(*history):
        assert known.ends <= max(last + DURATION + LOOK * MISSED_CHECKS, known.back + TURN), f"at {now}"


@given(histories())
def test_pods_never_end_while_those_who_renew_are_there(history) -> None:
    for now, last, known in played(*history):
        is_fenced, is_renewing = now >= known.ends, now - last <= TURN
        was_blind = known.back > last  # the last renewal was not seen to come
        assert not (is_fenced and is_renewing and not was_blind), f"at {now}"


@given(histories())
def test_who_sees_again_waits_for_one_turn_before_anything_ends(history) -> None:
    story, back = played(*history), 0.0
    for (before, _, _), (now, _, known) in itertools.pairwise(story):
        back = now if now - before > LOOK * MISSED_CHECKS else back
        assert not back or now < known.ends or now - back >= TURN, f"at {now}"
