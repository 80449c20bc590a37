"""When virtual nodes write."""

import random

import pytest

from hansa.nodes.heartbeat import Heartbeat, Timing


def pace(seed=0, **timing):
    return Heartbeat(Timing(**timing), random.Random(seed))


def test_a_new_node_writes_at_once():
    new = pace()
    assert new.is_beat_due(0.0)
    assert new.is_report_due(0.0)
    assert new.rest(0.0) == 0.0


def test_a_status_has_a_pause_after_it_and_comes_again_within_five_minutes():
    one = pace()
    one.told(100.0)
    assert one.rest(100.25) == 0.75
    assert one.rest(101.0) == 0.0
    assert not one.is_report_due(369.0)
    assert one.is_report_due(400.0)


def test_the_lease_is_renewed_within_ten_seconds_every_time():
    one, now = pace(), 0.0
    for _ in range(100):
        one.beaten(now)
        one.told(now)
        assert one.wait(now) <= 10.0
        assert not one.is_beat_due(now + one.wait(now) - 0.001)
        now += one.wait(now)
        assert one.is_beat_due(now)


def test_nodes_that_begin_together_don_t_stay_together():
    several = [pace(seed) for seed in range(200)]
    for one in several:
        one.beaten(0.0)
        one.told(0.0)
    waits = sorted(one.wait(0.0) for one in several)
    assert waits[20] < 2.0
    assert waits[-20] > 8.0


@pytest.mark.parametrize("now", [0.0, 1e6])
def test_a_wait_is_never_negative(now):
    one = pace()
    one.beaten(0.0)
    one.told(0.0)
    assert one.wait(now) >= 0.0
