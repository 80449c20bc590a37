"""The pace of a cluster that is not trusted."""

import pytest

from hansa.control import pace
from hansa.control.pace import Pace
from hansa.kube import watching
from hansa.kube.objects import Object

SMALL = watching.Added(Object.of({"metadata": {"name": "a"}}))
LARGE = watching.Modified(Object.of({"metadata": {"name": "a"}, "data": "x" * 3 * pace.UNIT_BYTES}))


def test_changes_beyond_a_burst_wait_until_the_rate_has_paid_for_them():
    one = Pace(rate=10, burst=100)
    one.delay(50.0)
    for _ in range(100):
        one.spend(SMALL)
    assert one.delay(50.0) == 0
    for _ in range(20):
        one.spend(watching.Bookmark("1"))
    assert one.delay(50.0) == pytest.approx(2)
    assert one.delay(51.0) == pytest.approx(1)
    assert one.delay(52.0) == 0
    one.spend(LARGE)
    assert one.delay(52.0) == pytest.approx(0.4)
