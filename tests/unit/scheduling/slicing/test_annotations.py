"""Annotations of namespaces and pods for the schedulers, and the reservations of assigned capacity."""

import pytest

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.scheduling.pooling.reservations import Reservations
from hansa.scheduling.pooling.upper_clusters import NamespaceRef, PodRef
from hansa.scheduling.slicing import annotations, placements, policies, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Assignment
from hansa.scheduling.slicing.pool import Member
from scheduling_things import a_pod

LATER = "scheduler.virtualcluster.io"
SIZE = slices.parse('{"cpu":"1"}')
POD_REF = PodRef("t1", "shop", "p")


def a_namespace(**annotations):
    return Object.of({"kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}})


def request(namespace, planned=None, **settings):
    made = annotations.PoolSettings(**settings)
    return annotations.slice_request("t1/shop", namespace, [], used={}, planned=planned, settings=made)


def assigned(cluster, phase="Pending"):
    pod = a_pod("p", phase=phase)
    return pod.with_metadata(annotations={keys.SUPER_CLUSTER: cluster})


def test_what_a_namespace_does_not_say_is_as_the_settings_say():
    new_plan, refused = request(a_namespace(), slice=SIZE, policy=policies.Pack(), may_evict=True)
    assert (new_plan.slice, new_plan.policy, new_plan.may_evict, new_plan.annotated, refused) == (
        SIZE,
        policies.Pack(),
        True,
        {},
        "",
    )
    own, _ = request(
        a_namespace(**{keys.SLICE: '{"cpu":"2"}', keys.PLACEMENT_POLICY: "spread"}), policy=policies.Pack()
    )
    assert (own.slice, own.policy) == (slices.parse('{"cpu":"2"}'), policies.Spread())


def test_the_later_spelling_is_read_where_ours_is_not_there():
    both = {f"{LATER}/slice": '{"cpu":"1"}', f"{LATER}/placements": '{"r1":1}'}
    new_plan, _ = request(a_namespace(**both))
    assert (new_plan.slice, new_plan.annotated) == (SIZE, {"r1": 1})
    ours, _ = request(a_namespace(**both, **{keys.PLACEMENTS: '{"r2":1}'}))
    assert ours.annotated == {"r2": 1}


def test_invalid_placements_are_reported_and_the_plan_stays():
    planned = Holding({"r1": 2}, SIZE)
    new_plan, refused = request(a_namespace(**{keys.PLACEMENTS: "r1"}), planned)
    assert (new_plan.annotated, new_plan.planned) == ({"r1": 2}, planned)
    assert refused.startswith(f'annotation {keys.PLACEMENTS}: invalid placements "r1"')


def test_a_slice_or_a_policy_that_cannot_be_read_is_raised():
    with pytest.raises(annotations.AnnotationError, match=f"annotation {keys.SLICE}: invalid slice"):
        request(a_namespace(**{keys.SLICE: "{}"}))
    with pytest.raises(annotations.AnnotationError, match=f"annotation {keys.PLACEMENT_POLICY}: invalid"):
        request(a_namespace(**{keys.PLACEMENT_POLICY: "best"}))


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ({}, Holding({}, SIZE)),
        ({keys.PLACEMENTS: '{"r1":1}'}, Holding({"r1": 1}, SIZE)),
        ({keys.PLACEMENTS: '{"r1":1}', keys.SLICE: '{"cpu":"2"}'}, Holding({"r1": 1}, slices.parse('{"cpu":"2"}'))),
        ({keys.PLACEMENTS: '{"r1":1}', keys.SLICE: "{}"}, Holding({"r1": 1}, SIZE)),
        ({keys.PLACEMENTS: "?"}, Holding()),
        ({keys.PLANNED: '{"placements":{"r1":1},"slice":{"cpu":"1"}}'}, Holding({}, SIZE)),
    ],
)
def test_without_records_a_namespace_holds_what_its_valid_annotations_say(assigned, expected):
    assert annotations.annotated(a_namespace(**assigned), SIZE) == expected


def test_the_reason_of_an_unschedulable_pod_is_read_from_its_condition():
    pod = a_pod("p")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    assert annotations.unschedulable(pod) == ""
    assert annotations.unschedulable(pod.with_fields(status={"conditions": [condition]})) == "0/2 nodes"
    assert annotations.unschedulable(pod.with_fields(status={"conditions": [condition | {"status": "True"}]})) == ""


def test_an_assignment_counts_before_it_is_written_despite_older_annotations():
    reservations, namespace_ref = Reservations(), NamespaceRef("t1", "shop")
    reservations.choose(POD_REF, Assignment("r1", {"cpu": 1}))
    assert reservations.observe(POD_REF, a_pod("p")) is False
    assert reservations.used(namespace_ref) == {"r1": {"cpu": 1}}
    assert reservations.used(namespace_ref, besides=POD_REF) == {}
    reservations.settle(POD_REF, assigned("r2"))
    assert list(reservations.used(namespace_ref)) == ["r2"]


def test_a_choice_that_was_not_written_counts_no_longer():
    reservations = Reservations()
    reservations.choose(POD_REF, Assignment("r1", {"cpu": 1}))
    reservations.settle(POD_REF, a_pod("p"))
    assert reservations.used(POD_REF.namespace_ref) == {}


def test_pods_that_finish_move_or_are_deleted_free_their_reservation():
    reservations = Reservations()
    assert reservations.observe(POD_REF, assigned("r1")) is False
    assert reservations.observe(POD_REF, assigned("r1")) is False
    assert reservations.observe(POD_REF, assigned("r2")) is True
    assert reservations.observe(POD_REF, assigned("r2", "Succeeded")) is True
    assert reservations.observe(POD_REF, None) is False


def test_the_reservations_report_whether_a_holding_changed():
    reservations, namespace_ref = Reservations(), NamespaceRef("t1", "shop")
    assert reservations.hold(namespace_ref, Holding({"r1": 1}, SIZE)) is True
    assert reservations.hold(namespace_ref, Holding({"r1": 1}, SIZE)) is False
    assert reservations.hold(namespace_ref, Holding()) is True
    assert reservations.hold(namespace_ref, Holding({}, SIZE)) is False, "nothing of another size is nothing, too"


def test_what_a_namespace_gives_back_is_free_when_that_is_written():
    reservations, namespace_ref = Reservations(), NamespaceRef("t1", "shop")
    reservations.pool = reservations.pool.with_members(
        {name: Member(name, {"cpu": 3 * SIZE["cpu"]}) for name in ("r1", "r2")}
    )
    reservations.hold(namespace_ref, Holding({"r1": 1, "r2": 2}, SIZE))
    reservations.hold_until_written(namespace_ref, Holding({"r1": 3}, SIZE))
    assert [reservations.pool.room(name, SIZE) for name in ("r1", "r2")] == [0, 1]
    assert reservations.hold_until_written(namespace_ref, Holding()) is True
    assert [reservations.pool.room(name, SIZE) for name in ("r1", "r2")] == [2, 1]
    assert reservations.hold_until_written(namespace_ref, Holding()) is False


def test_slices_of_another_size_are_given_back_as_a_whole():
    former = Holding({"r1": 1}, {"cpu": 5})
    assert placements.excess(former, Holding({"r1": 9}, {"cpu": 1})) == former
    assert placements.excess(former, Holding({"r1": 1}, {"cpu": 5})) == Holding({}, {"cpu": 5})
