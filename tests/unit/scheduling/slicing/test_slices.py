"""Slices, quotas and placements as texts and numbers."""

from fractions import Fraction

import pytest

from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.scheduling.slicing import placements, policies, pool, quotas, slices

SEED = '{"cpu":"100m", "memory":"100Mi"}'


def a_quota(**spec):
    return Object.of({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec})


def amounts(**spelled):
    return {name: quantity.parse(text).nano for name, text in spelled.items()}


def test_a_slice_is_read_in_exact_amounts_of_any_resource():
    assert slices.parse(SEED) == amounts(cpu="100m", memory="100Mi")
    assert slices.parse('{"requests.cpu": 2, "example.com/gpu": "1"}') == {
        "cpu": 2 * quantity.UNIT,
        "example.com/gpu": quantity.UNIT,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu=1", "malformed"),
        ("[]", "Expected `object`"),
        ("{}", "no resource is given"),
        ('{"cpu": "lots"}', 'cpu: "lots" is not a quantity'),
        ('{"cpu": null}', "cpu is not a quantity"),
        ('{"cpu": true}', "cpu is not a quantity"),
        ('{"cpu": "0"}', "cpu is 0, but must be greater than zero"),
        ('{"cpu": "-1"}', "cpu is -1, but"),
        ('{"limits.cpu": "1"}', "limits.cpu is not supported, use cpu"),
        ('{"cpu": "1", "requests.cpu": "1"}', "duplicate resource cpu"),
    ],
)
def test_an_invalid_slice_is_refused_with_the_reason_and_an_example(text, why):
    with pytest.raises(slices.SliceError) as caught:
        slices.parse(text)
    assert why in str(caught.value)
    assert '{"cpu": "2", "memory": "4Gi"}' in str(caught.value)


def test_reading_one_slice_leaves_the_default_alone():
    before = dict(slices.DEFAULT)
    slices.parse(SEED)
    assert before == slices.DEFAULT == amounts(cpu="2", memory="4Gi")


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (amounts(cpu="200m", memory="200Mi"), 2),
        (amounts(cpu="201m", memory="200Mi"), 3),
        (amounts(cpu="100m", memory="1Gi"), 11),
        (amounts(cpu="50m"), 1),
        (amounts(cpu="1n", memory="1"), 1),
        (amounts(cpu="0", memory="0"), 0),
        (amounts(pods="5"), 0),
        ({}, 0),
    ],
)
def test_slices_cover_the_quota_in_every_resource_that_both_name(quota, expected):
    assert slices.count(quota, slices.parse(SEED)) == expected


def test_a_slice_that_is_far_too_small_is_refused():
    with pytest.raises(slices.SliceError, match="is 1000000 slices, more than the maximum of 10000"):
        slices.count(amounts(cpu="1k"), amounts(cpu="1m"))


def test_slices_are_recut_exactly():
    old, new = amounts(cpu="1", memory="1Gi"), amounts(cpu="3", memory="2Gi")
    assert slices.recut(3, old, new) == Fraction(3, 2)
    assert slices.recut(3, old, old) == 3
    assert slices.recut(3, old, amounts(pods="1")) == 3


def test_all_quotas_hold_so_the_smallest_counts():
    one = a_quota(hard={"requests.cpu": "4", "limits.memory": "8Gi", "pods": "9"})
    two = a_quota(hard={"cpu": "3", "limits.cpu": "6", "requests.example.com/gpu": "1"})
    some = a_quota(hard={"cpu": "1"}, scopes=["BestEffort"])
    classes = a_quota(hard={"cpu": "1"}, scopeSelector={"matchExpressions": []})
    expected = {**amounts(cpu="3", memory="8Gi", pods="9"), "example.com/gpu": quantity.UNIT}
    assert quotas.bound([one, two, some, classes]) == expected
    assert quotas.bound([]) == quotas.bound([a_quota()]) == {}


def test_placements_are_read_and_written_as_the_seed_has_them():
    assert placements.parse('{"r2":1, "r1":1, "r3":0}') == {"r1": 1, "r2": 1}
    assert placements.encoded({"r2": 1, "r1": 1, "r3": 0}) == '{"r1":1,"r2":1}'
    assert placements.parse("") == placements.parse(" ") == placements.parse("{}") == {}


@pytest.mark.parametrize("text", ["r1", '{"r1": "one"}', '{"r1": -1}', '["r1"]', '{"r1": 1.5}'])
def test_placements_that_cannot_be_read_say_how_to_write_them(text):
    with pytest.raises(placements.PlacementError, match='use a JSON object such as {"r1": 1, "r2": 1}'):
        placements.parse(text)


def test_policies_are_read_from_settings():
    assert policies.parse("spread") == policies.Spread()
    assert policies.parse(" pack ") == policies.Pack()
    prefer = policies.parse("prefer region=eu:10; tier in (gold,silver):5")
    assert [(str(selector), weight) for selector, weight in prefer.preferences] == [
        ("region=eu", 10),
        ("tier in (gold,silver)", 5),
    ]


@pytest.mark.parametrize("text", ["", "random", "pack tight", "prefer", "prefer region=eu", "prefer a b:1"])
def test_an_invalid_policy_is_refused(text):
    with pytest.raises(policies.PolicyError, match="invalid placement policy "):
        policies.parse(text)


def test_a_headroom_is_a_share_amounts_or_both():
    assert pool.headroom("10%") == pool.Headroom(10)
    assert pool.headroom("10%, cpu=2") == pool.Headroom(10, amounts(cpu="2"))
    assert pool.headroom("") == pool.Headroom()
    assert pool.headroom("10%,cpu=2").left("cpu", 10 * quantity.UNIT) == 7 * quantity.UNIT


@pytest.mark.parametrize("text", ["10", "101%", "-1%", "cpu=x", "cpu=-1", "x%"])
def test_an_invalid_headroom_is_refused_with_an_example(text):
    with pytest.raises(pool.HeadroomError, match="use a form such as 10% or cpu=2,memory=4Gi"):
        pool.headroom(text)


def test_a_slice_with_3000_nested_brackets_is_an_invalid_slice():
    with pytest.raises(slices.SliceError, match="nested more than 32 levels"):
        slices.parse("[" * 3000 + "]" * 3000)
