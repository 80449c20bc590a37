"""What namespaces and pods say to the schedulers, and the ledger of what was given away."""

import pytest

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.scheduling.pooling import annotations
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NamespaceRef, PodRef
from hansa.scheduling.slicing import placements, policies, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Seat
from hansa.scheduling.slicing.pool import Member
from scheduling_things import a_pod

LATER = "scheduler.virtualcluster.io"
SIZE = slices.read('{"cpu":"1"}')
SPOT = PodRef("t1", "shop", "p")


def a_namespace(**annotations):
    return Object.of({"kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})


def wish(namespace, **settings):
    return annotations.wish("t1/shop", namespace, [], used={}, settings=annotations.PoolSettings(**settings))


def given(cluster, phase="Pending"):
    pod = a_pod("p", phase=phase)
    return pod.with_metadata(annotations={keys.SUPER_CLUSTER: cluster})


def test_what_a_namespace_does_not_say_is_as_the_settings_say():
    said, refused = wish(a_namespace(), slice=SIZE, policy=policies.Pack(), may_evict=True)
    assert (said.slice, said.policy, said.may_evict, said.standing, refused) == (SIZE, policies.Pack(), True, {}, "")
    own, _ = wish(a_namespace(**{keys.SLICE: '{"cpu":"2"}', keys.PLACEMENT_POLICY: "spread"}), policy=policies.Pack())
    assert (own.slice, own.policy) == (slices.read('{"cpu":"2"}'), policies.Spread())


def test_the_later_spelling_is_read_where_ours_is_not_there():
    both = {f"{LATER}/slice": '{"cpu":"1"}', f"{LATER}/placements": '{"r1":1}'}
    said, _ = wish(a_namespace(**both))
    assert (said.slice, said.standing) == (SIZE, {"r1": 1})
    ours, _ = wish(a_namespace(**both, **{keys.PLACEMENTS: '{"r2":1}'}))
    assert ours.standing == {"r2": 1}


def test_placements_that_cannot_be_read_are_told_and_the_plan_stays():
    planned = Holding({"r1": 2}, SIZE)
    broken = {keys.PLACEMENTS: "r1", keys.PLANNED: placements.recorded(planned)}
    said, refused = wish(a_namespace(**broken))
    assert (said.standing, said.planned) == ({"r1": 2}, planned)
    assert "the placements 'r1' cannot be read" in refused


def test_a_slice_or_a_policy_that_cannot_be_read_is_raised():
    with pytest.raises(slices.SliceError):
        wish(a_namespace(**{keys.SLICE: "{}"}))
    with pytest.raises(policies.PolicyError):
        wish(a_namespace(**{keys.PLACEMENT_POLICY: "best"}))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Holding({}, SIZE)),
        ({keys.PLACEMENTS: '{"r1":1}'}, Holding({"r1": 1}, SIZE)),
        ({keys.PLACEMENTS: '{"r1":1}', keys.SLICE: '{"cpu":"2"}'}, Holding({"r1": 1}, slices.read('{"cpu":"2"}'))),
        (
            {
                keys.PLACEMENTS: '{"r1":1}',
                keys.SLICE: '{"cpu":"2"}',
                keys.PLANNED: '{"placements":{"r1":1},"slice":{"cpu":"3"}}',
            },
            Holding({"r1": 1}, slices.read('{"cpu":"3"}')),
        ),
        ({keys.PLACEMENTS: '{"r1":1}', keys.SLICE: "{}"}, Holding({"r1": 1}, SIZE)),
        (
            {keys.PLACEMENTS: '{"r2":1}', keys.PLANNED: '{"placements":{"r1":1},"slice":{"cpu":"1"}}'},
            Holding({"r1": 1}, SIZE),
        ),
        ({keys.PLACEMENTS: "?", keys.PLANNED: '{"placements":{"r1":1},"slice":{"cpu":"1"}}'}, Holding({"r1": 1}, SIZE)),
    ],
)
def test_what_a_namespace_holds_is_told_by_its_own_words_as_far_as_they_can_be_read(given, expected):
    assert annotations.held(a_namespace(**given), SIZE) == expected


def test_a_pod_says_that_no_node_was_found_for_it():
    pod = a_pod("p")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    assert annotations.unschedulable(pod) == ""
    assert annotations.unschedulable(pod.with_fields(status={"conditions": [condition]})) == "0/2 nodes"
    assert annotations.unschedulable(pod.with_fields(status={"conditions": [condition | {"status": "True"}]})) == ""


def test_a_choice_counts_before_it_is_written_whatever_older_words_say():
    ledger, space = Reservations(), NamespaceRef("t1", "shop")
    ledger.choose(SPOT, Seat("r1", {"cpu": 1}))
    assert ledger.observe(SPOT, a_pod("p")) is False
    assert ledger.used(space) == {"r1": {"cpu": 1}}
    assert ledger.used(space, besides=SPOT) == {}
    ledger.settle(SPOT, given("r2"))
    assert list(ledger.used(space)) == ["r2"]


def test_a_choice_that_was_not_written_counts_no_longer():
    ledger = Reservations()
    ledger.choose(SPOT, Seat("r1", {"cpu": 1}))
    ledger.settle(SPOT, a_pod("p"))
    assert ledger.used(SPOT.space) == {}


def test_pods_that_end_move_or_go_free_their_room():
    ledger = Reservations()
    assert ledger.observe(SPOT, given("r1")) is False
    assert ledger.observe(SPOT, given("r1")) is False
    assert ledger.observe(SPOT, given("r2")) is True
    assert ledger.observe(SPOT, given("r2", "Succeeded")) is True
    assert ledger.observe(SPOT, None) is False


def test_the_ledger_says_whether_a_holding_is_news():
    ledger, space = Reservations(), NamespaceRef("t1", "shop")
    assert ledger.hold(space, Holding({"r1": 1}, SIZE)) is True
    assert ledger.hold(space, Holding({"r1": 1}, SIZE)) is False
    assert ledger.hold(space, Holding()) is True
    assert ledger.hold(space, Holding({}, SIZE)) is False, "nothing of another size is nothing, too"


def test_what_a_namespace_gives_back_is_free_when_that_is_written():
    ledger, space = Reservations(), NamespaceRef("t1", "shop")
    ledger.pool = ledger.pool.with_members({name: Member(name, {"cpu": 3 * SIZE["cpu"]}) for name in ("r1", "r2")})
    ledger.hold(space, Holding({"r1": 1, "r2": 2}, SIZE))
    ledger.owe(space, Holding({"r1": 3}, SIZE))
    assert [ledger.pool.room(name, SIZE) for name in ("r1", "r2")] == [0, 1]
    assert ledger.owe(space, Holding()) is True
    assert [ledger.pool.room(name, SIZE) for name in ("r1", "r2")] == [2, 1]
    assert ledger.owe(space, Holding()) is False


def test_slices_of_another_size_are_given_back_as_a_whole():
    former = Holding({"r1": 1}, {"cpu": 5})
    assert placements.beyond(former, Holding({"r1": 9}, {"cpu": 1})) == former
    assert placements.beyond(former, Holding({"r1": 1}, {"cpu": 5})) == Holding({}, {"cpu": 5})
