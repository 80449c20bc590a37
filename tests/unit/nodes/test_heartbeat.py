"""When virtual nodes write."""

import random

import pytest

from hansa.nodes.heartbeat import Heartbeat, Timing


def pace(seed=0, **timing):
    return Heartbeat(Timing(**timing), random.Random(seed))


def test_a_new_node_writes_at_once():
    new = pace()
    assert new.is_renewal_due(0.0)
    assert new.is_report_due(0.0)
    assert new.until_status_allowed(0.0) == 0.0


def test_a_status_has_a_pause_after_it_and_comes_again_within_five_minutes():
    one = pace()
    one.status_written(100.0)
    assert one.until_status_allowed(100.25) == 0.75
    assert one.until_status_allowed(101.0) == 0.0
    assert not one.is_report_due(369.0)
    assert one.is_report_due(400.0)


def test_the_lease_is_renewed_within_ten_seconds_every_time():
    one, now = pace(), 0.0
    for _ in range(100):
        one.renewed(now)
        one.status_written(now)
        assert one.until_due(now) <= 10.0
        assert not one.is_renewal_due(now + one.until_due(now) - 0.001)
        now += one.until_due(now)
        assert one.is_renewal_due(now)


def test_nodes_that_begin_together_don_t_stay_together():
    several = [pace(seed) for seed in range(200)]
    for one in several:
        one.renewed(0.0)
        one.status_written(0.0)
    waits = sorted(one.until_due(0.0) for one in several)
    assert waits[20] < 2.0
    assert waits[-20] > 8.0


@pytest.mark.parametrize("now", [0.0, 1e6])
def test_a_wait_is_never_negative(now):
    one = pace()
    one.renewed(0.0)
    one.status_written(0.0)
    assert one.until_due(now) >= 0.0
