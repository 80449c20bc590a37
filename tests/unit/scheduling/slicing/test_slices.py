"""Slices, quotas and placements as texts and numbers."""

from fractions import Fraction

import pytest

from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.scheduling.slicing import placements, policies, pool, quotas, slices
from hansa.scheduling.slicing.placements import Holding

SEED = '{"cpu":"100m", "memory":"100Mi"}'


def a_quota(**spec):
    return Object.of({"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": spec})


def amounts(**spelled):
    return {name: quantity.parse(text).nano for name, text in spelled.items()}


def test_a_slice_is_read_in_exact_amounts_of_any_resource():
    assert slices.read(SEED) == amounts(cpu="100m", memory="100Mi")
    assert slices.read('{"requests.cpu": 2, "example.com/gpu": "1"}') == {
        "cpu": 2 * quantity.UNIT,
        "example.com/gpu": quantity.UNIT,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cpu=1", "malformed"),
        ("[]", "Expected `object`"),
        ("{}", "it names no resource"),
        ('{"cpu": "lots"}', 'cpu: "lots" is not a quantity'),
        ('{"cpu": null}', "cpu is not a quantity"),
        ('{"cpu": true}', "cpu is not a quantity"),
        ('{"cpu": "0"}', "cpu is 0, and a slice must have more than nothing of it"),
        ('{"cpu": "-1"}', "cpu is -1, and"),
        ('{"limits.cpu": "1"}', "limits.cpu cannot be reserved, name cpu instead"),
        ('{"cpu": "1", "requests.cpu": "1"}', "it names cpu twice"),
    ],
)
def test_a_slice_that_cannot_be_read_says_why_and_how_to_write_one(text, why):
    with pytest.raises(slices.SliceError) as caught:
        slices.read(text)
    assert why in str(caught.value)
    assert '{"cpu": "2", "memory": "4Gi"}' in str(caught.value)


def test_reading_one_slice_leaves_the_default_alone():
    before = dict(slices.DEFAULT)
    slices.read(SEED)
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
    assert slices.count(quota, slices.read(SEED)) == expected


def test_a_slice_that_is_far_too_small_is_refused():
    with pytest.raises(slices.SliceError, match="makes 1000000 slices, and 10000 is the most"):
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
    assert placements.read('{"r2":1, "r1":1, "r3":0}') == {"r1": 1, "r2": 1}
    assert placements.spelled({"r2": 1, "r1": 1, "r3": 0}) == '{"r1":1,"r2":1}'
    assert placements.read("") == placements.read(" ") == placements.read("{}") == {}


@pytest.mark.parametrize("text", ["r1", '{"r1": "one"}', '{"r1": -1}', '["r1"]', '{"r1": 1.5}'])
def test_placements_that_cannot_be_read_say_how_to_write_them(text):
    with pytest.raises(placements.PlacementError, match='write them like {"r1": 1, "r2": 1}'):
        placements.read(text)


def test_a_holding_is_remembered():
    holding = Holding({"r2": 1, "r1": 2}, slices.read(SEED))
    assert placements.recorded(holding) == '{"placements":{"r1":2,"r2":1},"slice":{"cpu":"100m","memory":"100Mi"}}'
    assert placements.remembered(placements.recorded(holding)) == holding
    assert placements.remembered("") is None
    assert placements.remembered('{"placements":{},"slice":{}}') is None


def test_policies_are_read_from_settings():
    assert policies.read("spread") == policies.Spread()
    assert policies.read(" pack ") == policies.Pack()
    prefer = policies.read("prefer region=eu:10; tier in (gold,silver):5")
    assert [(str(selector), weight) for selector, weight in prefer.likes] == [
        ("region=eu", 10),
        ("tier in (gold,silver)", 5),
    ]


@pytest.mark.parametrize("text", ["", "random", "pack tight", "prefer", "prefer region=eu", "prefer a b:1"])
def test_a_policy_that_cannot_be_read_says_so(text):
    with pytest.raises(policies.PolicyError, match="cannot be read: "):
        policies.read(text)


def test_a_headroom_is_a_share_amounts_or_both():
    assert pool.headroom("10%") == pool.Headroom(10)
    assert pool.headroom("10%, cpu=2") == pool.Headroom(10, amounts(cpu="2"))
    assert pool.headroom("") == pool.Headroom()
    assert pool.headroom("10%,cpu=2").left("cpu", 10 * quantity.UNIT) == 7 * quantity.UNIT


@pytest.mark.parametrize("text", ["10", "101%", "-1%", "cpu=x", "cpu=-1", "x%"])
def test_a_headroom_that_cannot_be_read_says_how_to_write_one(text):
    with pytest.raises(pool.HeadroomError, match="write it like 10% or cpu=2,memory=4Gi"):
        pool.headroom(text)
