import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.runtime import backoff, errors


def test_the_delay_grows_by_the_factor_up_to_the_most():
    steady = backoff.Backoff(first=1, factor=2, most=10, jitter=0)
    assert [steady.delay(n, random.Random(0)) for n in range(6)] == [0, 1, 2, 4, 8, 10]


@given(st.integers(1, 10**6), st.floats(0, 0.9), st.floats(1, 10))
def test_the_delay_is_never_more_than_the_most_nor_less_than_the_jitter_allows(failures, jitter, factor):
    delay = backoff.Backoff(first=0.1, factor=factor, most=60, jitter=jitter).delay(failures, random.Random(failures))
    assert 0.1 * (1 - jitter) <= delay <= 60


def test_many_delays_after_the_same_failure_are_spread():
    randomness = random.Random(1)
    delays = [backoff.Backoff(first=1, most=60, jitter=0.5).delay(3, randomness) for _ in range(100)]
    assert min(delays) < 2.5
    assert max(delays) > 5.5


@pytest.mark.parametrize("wrong", [{"first": 0}, {"first": 2, "most": 1}, {"first": 1, "factor": 0.5}])
def test_a_backoff_that_makes_no_sense_is_refused_with_a_sentence(wrong):
    with pytest.raises(errors.HansaError, match="is not valid"):
        backoff.Backoff(**wrong)
