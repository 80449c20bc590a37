"""Taints and tolerations: which pods a node keeps away, and for how long the others may stay."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import tolerations
from hansa.kube.language.tolerations import Effect, Taint, Toleration

GPU = Taint("gpu", "a100", "NoSchedule")
DOWN = Taint("down", "", "NoExecute")

some_keys, some_values = st.sampled_from(["a", "b"]), st.sampled_from(["", "x"])
taints = st.builds(Taint, some_keys, some_values, st.sampled_from(list(Effect)))
consents = st.builds(
    Toleration,
    st.just("") | some_keys,
    st.sampled_from(["", "Equal", "Exists", "Gt"]),
    some_values,
    st.just("") | st.sampled_from(list(Effect)),
    st.none() | st.integers(-5, 100),
)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("gpu", "Equal", "a100", "NoSchedule"), True),
        (Toleration("gpu", "", "a100", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "a100"), True),
        (Toleration("gpu", "Equal", "h100"), False),
        (Toleration("gpu", "Equal"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", "ignored"), True),
        (Toleration("gpu", "Exists", effect="NoExecute"), False),
        (Toleration("disk", "Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(value="a100"), True),
        (Toleration(), False),
        (Toleration("gpu", "exists"), False),
    ],
)
def test_a_toleration_fits_a_taint_by_key_value_and_effect(toleration: Toleration, expected: bool) -> None:
    assert toleration.tolerates(GPU) is expected


@pytest.mark.parametrize("operator", ["Lt", "Gt"])
def test_operators_that_are_alpha_tolerate_nothing(operator: str) -> None:
    for bound in ("5", "50"):
        assert not Toleration("level", operator, bound).tolerates(Taint("level", "10", "NoSchedule"))


def test_only_taints_that_repel_keep_a_pod_off_a_node() -> None:
    soft = Taint("slow", "", "PreferNoSchedule")
    assert tolerations.untolerated([GPU, soft, DOWN], []) == (GPU, DOWN)
    assert tolerations.untolerated([GPU, soft, DOWN], [Toleration("gpu", "Exists")]) == (DOWN,)
    assert tolerations.untolerated([GPU, soft], [Toleration(operator="Exists")]) == ()
    assert tolerations.untolerated([GPU, soft], [], effects=frozenset({Effect.PREFER_NO_SCHEDULE})) == (soft,)


def test_a_pod_stays_as_long_as_its_tolerations_of_no_execute_allow() -> None:
    lost = Taint("lost", "", "NoExecute")
    patient, hasty = (
        Toleration("down", "Exists", toleration_seconds=300),
        Toleration("lost", "Exists", toleration_seconds=5),
    )
    assert tolerations.seconds_until_eviction([], []) == math.inf
    assert tolerations.seconds_until_eviction([GPU], []) == math.inf
    assert tolerations.seconds_until_eviction([DOWN], []) == 0
    assert tolerations.seconds_until_eviction([DOWN], [Toleration("down", "Exists")]) == math.inf
    assert tolerations.seconds_until_eviction([DOWN], [patient]) == 300
    assert tolerations.seconds_until_eviction([DOWN, lost], [patient, hasty]) == 5
    assert tolerations.seconds_until_eviction([DOWN, lost], [patient]) == 0
    assert tolerations.seconds_until_eviction([DOWN], [Toleration("down", "Exists", toleration_seconds=-1)]) == 0


def test_the_first_toleration_that_fits_sets_the_time() -> None:
    short, forever = Toleration("down", "Exists", toleration_seconds=5), Toleration(operator="Exists")
    assert tolerations.seconds_until_eviction([DOWN], [short, forever]) == 5
    assert tolerations.seconds_until_eviction([DOWN], [forever, short]) == math.inf


def test_taints_and_tolerations_decode_from_the_form_of_the_api() -> None:
    taint = msgspec.json.decode(b'{"key":"down","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}', type=Taint)
    toleration = msgspec.convert({"key": "down", "operator": "Exists", "tolerationSeconds": 300}, Toleration)
    assert taint == DOWN
    assert toleration == Toleration("down", "Exists", toleration_seconds=300)
    assert (str(GPU), str(DOWN)) == ("gpu=a100:NoSchedule", "down:NoExecute")


@given(st.lists(taints, max_size=4), st.lists(consents, max_size=4), consents)
def test_one_more_toleration_never_keeps_a_pod_off(
    some: list[Taint], given_: list[Toleration], more: Toleration
) -> None:
    before = tolerations.untolerated(some, given_)
    after = tolerations.untolerated(some, [*given_, more])
    assert set(after) <= set(before) <= set(some)
    assert tolerations.seconds_until_eviction(some, [*given_, more]) >= tolerations.seconds_until_eviction(some, given_)


@given(st.lists(taints, max_size=4))
def test_a_toleration_of_everything_tolerates_all_taints(some: list[Taint]) -> None:
    everything = [Toleration(operator="Exists")]
    assert tolerations.untolerated(some, everything, effects=frozenset(Effect)) == ()
    assert tolerations.seconds_until_eviction(some, everything) == math.inf
