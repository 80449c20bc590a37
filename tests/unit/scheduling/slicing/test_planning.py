"""Plans of namespace slices."""

import dataclasses

import pytest

from hansa.kube.language import quantity
from hansa.scheduling.slicing import policies, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import plan
from hansa.scheduling.slicing.pool import Headroom, Member, Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest

CPU = quantity.UNIT
SLICE = {"cpu": CPU}


def a_pool(*, states=None, labels=None, headroom=None, **cpus):
    """Clusters with so many CPUs each."""
    pool = Pool()
    for name, cpu in cpus.items():
        state = (states or {}).get(name, State.OPEN)
        member = Member(name, {"cpu": cpu * CPU}, (labels or {}).get(name, {}), state, headroom=headroom or Headroom())
        pool = pool.with_member(member)
    return pool


def a_wish(cpu, *, had=None, slice_=SLICE, had_slice=None, used=None, **more):
    """A namespace with a quota of so many CPUs, that had these placements by the last plan."""
    planned = None if had is None else Holding(had, had_slice or slice_)
    using = {cluster: {"cpu": int(number * CPU)} for cluster, number in (used or {}).items()}
    wish = SliceRequest("t/ns", {"cpu": int(cpu * CPU)}, slice_, annotated=had or {}, planned=planned, used=using)
    return dataclasses.replace(wish, **more)


def placed(wish, pool):
    return dict(plan(wish, pool).placements)


def test_the_seeds_two_slices_go_to_both_clusters():
    seed = slices.parse('{"cpu":"100m", "memory":"100Mi"}')
    quota = slices.parse('{"cpu":"200m", "memory":"200Mi"}')
    member = Member("r1", slices.parse('{"cpu":"4", "memory":"8Gi"}'))
    pool = Pool().with_member(member).with_member(dataclasses.replace(member, name="r2"))
    assert plan(SliceRequest("t/default", quota, seed), pool).placements == {"r1": 1, "r2": 1}


def test_spread_is_even_and_continues_where_capacity_is_free():
    assert placed(a_wish(6), a_pool(r1=9, r2=9, r3=1)) == {"r1": 3, "r2": 2, "r3": 1}


def test_pack_takes_the_tightest_cluster_that_takes_all_or_else_the_fewest():
    pack = policies.Pack()
    assert placed(a_wish(3, policy=pack), a_pool(r1=9, r2=4, r3=2)) == {"r2": 3}
    assert placed(a_wish(10, policy=pack), a_pool(r1=9, r2=4, r3=2)) == {"r1": 9, "r3": 1}
    assert placed(a_wish(3, had={"r3": 1}, policy=pack), a_pool(r1=9, r2=4, r3=2)) == {"r2": 1, "r3": 2}


def test_prefer_fills_the_clusters_whose_labels_weigh_most():
    labels = {"r1": {"region": "us"}, "r2": {"region": "eu"}, "r3": {"region": "eu", "tier": "gold"}}
    pool = a_pool(r1=9, r2=2, r3=2, labels=labels)
    prefer = policies.parse("prefer region=eu:10; tier=gold:5")
    assert placed(a_wish(5, policy=prefer), pool) == {"r1": 1, "r2": 2, "r3": 2}
    assert placed(a_wish(1, policy=policies.parse("prefer region=eu:-1")), pool) == {"r1": 1}


def test_slices_of_others_and_headroom_are_not_assigned():
    pool = a_pool(r1=4, r2=4).with_holding("t/other", Holding({"r1": 3, "r2": 1}, SLICE))
    assert placed(a_wish(4), pool) == {"r1": 1, "r2": 3}
    with_headroom = a_pool(r1=4, r2=4, headroom=Headroom(percent=50, amounts={"cpu": CPU}))
    assert placed(a_wish(4), with_headroom) == {"r1": 1, "r2": 1}
    assert placed(a_wish(4), pool.with_holding("t/other", Holding())) == {"r1": 2, "r2": 2}


def test_two_that_compete_for_the_last_slice_do_not_both_get_it():
    pool = a_pool(r1=1)
    first = plan(a_wish(1), pool)
    second = plan(dataclasses.replace(a_wish(1), namespace="t/other"), pool.with_holding("t/ns", first.holding))
    assert (first.placements, second.placements) == ({"r1": 1}, {})
    assert str(second.missing) == "1 slice is not placed (1 CPU): r1 has 0 CPU left, a slice needs 1 CPU"


def test_when_the_quota_grows_old_slices_stay():
    assert placed(a_wish(4, had={"r1": 2}), a_pool(r1=9, r2=9)) == {"r1": 2, "r2": 2}
    assert placed(a_wish(3, had={"r1": 2}, policy=policies.Pack()), a_pool(r1=9, r2=3)) == {"r1": 3}


def test_when_the_quota_shrinks_the_emptiest_go_first():
    assert placed(a_wish(2, had={"r1": 2, "r2": 2}, used={"r1": 0.5}), a_pool(r1=9, r2=9)) == {"r1": 2}
    assert placed(a_wish(4, had={"r1": 3, "r2": 3}), a_pool(r1=9, r2=9)) == {"r1": 2, "r2": 2}
    assert placed(a_wish(2, had={"r1": 3, "r2": 1}, policy=policies.Pack()), a_pool(r1=9, r2=9)) == {"r1": 2}


def test_running_pods_keep_their_slices_unless_eviction_is_allowed():
    wish = a_wish(1, had={"r1": 2, "r2": 2}, used={"r1": 1.5, "r2": 0.1})
    kept = plan(wish, a_pool(r1=9, r2=9))
    assert kept.placements == {"r1": 2, "r2": 1}
    assert kept.notes == (
        "r1 keeps 2: running pods use them",
        "r2 keeps 1: running pods use them",
    )
    evicting = plan(dataclasses.replace(wish, may_evict=True), a_pool(r1=9, r2=9))
    assert (evicting.placements, evicting.notes) == ({"r1": 1}, ())


@pytest.mark.parametrize("quota", [{}, {"cpu": 0}, {"pods": 5 * CPU}])
def test_when_the_quota_is_gone_the_placements_are_cleared(quota):
    wish = dataclasses.replace(a_wish(2, had={"r1": 2}, used={"r1": 1}), quota=quota)
    assert placed(wish, a_pool(r1=9)) == {}


def test_when_the_size_of_slices_changes_as_little_as_possible_moves():
    double = {"cpu": 2 * CPU}
    pool = a_pool(r1=9, r2=9, r3=9)
    assert placed(a_wish(6, had={"r1": 4, "r2": 2}, had_slice=SLICE, slice_=double), pool) == {"r1": 2, "r2": 1}
    assert placed(a_wish(6, had={"r1": 2, "r2": 1}, had_slice=double), pool) == {"r1": 4, "r2": 2}
    halved = a_wish(6, had={"r1": 3, "r2": 3}, had_slice=SLICE, slice_=double)
    assert placed(halved, pool) == {"r1": 2, "r2": 1}, "one and a half slices each: one of them keeps all it had"


def test_slices_that_do_not_fit_wait_and_list_what_is_missing():
    wanting = plan(a_wish(5), a_pool(r1=2, r2=1, r3=9, states={"r3": State.CLOSED}))
    assert wanting.placements == {"r1": 2, "r2": 1}
    assert (wanting.wanted, wanting.missing.slices, wanting.missing.amounts) == (5, 2, {"cpu": 2 * CPU})
    assert str(wanting.missing) == (
        "2 slices are not placed (2 CPU): r1 has 0 CPU left, a slice needs 1 CPU; "
        "r2 has 0 CPU left, a slice needs 1 CPU; r3 is closed"
    )
    assert str(plan(a_wish(1), Pool()).missing) == "1 slice is not placed (1 CPU): the pool has no clusters"


def test_where_only_all_or_nothing_is_allowed_nothing_new_is_placed():
    pool = a_pool(r1=2, r2=1)
    assert placed(a_wish(5, may_be_partial=False), pool) == {}
    assert placed(a_wish(5, had={"r1": 1}, may_be_partial=False), pool) == {"r1": 1}
    assert placed(a_wish(3, had={"r1": 1}, may_be_partial=False), pool) == {"r1": 2, "r2": 1}
    recut = a_wish(9, had={"r1": 2, "gone": 1}, had_slice=SLICE, slice_={"cpu": 3 * CPU}, may_be_partial=False)
    assert plan(recut, pool).holding == Holding({"r1": 2}, SLICE), "a new size that does not fit changes nothing"


def test_missing_slices_are_placed_when_capacity_appears_and_none_moves():
    first = plan(a_wish(4), a_pool(r1=2))
    later = plan(a_wish(4, had=first.placements), a_pool(r1=2, r2=9))
    assert (first.placements, later.placements) == ({"r1": 2}, {"r1": 2, "r2": 2})
    assert later.missing is None


def test_a_cluster_that_shrank_keeps_what_it_has_and_gets_nothing_new():
    assert placed(a_wish(4, had={"r1": 3}), a_pool(r1=1, r2=9)) == {"r1": 3, "r2": 1}


def test_the_slices_of_a_lost_cluster_are_placed_again():
    pool = a_pool(r1=9, r2=9, r3=9, states={"r1": State.LOST})
    assert placed(a_wish(4, had={"r1": 2, "r2": 2}, used={"r1": 2}), pool) == {"r2": 2, "r3": 2}
    assert placed(a_wish(4, had={"gone": 2, "r2": 2}), pool) == {"r2": 2, "r3": 2}


def test_slices_of_a_cluster_that_leaves_are_placed_where_capacity_is_free():
    states = {"r1": State.LEAVING}
    assert placed(a_wish(2, had={"r1": 2}, used={"r1": 1}), a_pool(r1=9, r2=9, states=states)) == {"r2": 2}
    assert placed(a_wish(2, had={"r1": 2}), a_pool(r1=9, r2=1, states=states)) == {"r1": 1, "r2": 1}
    assert placed(a_wish(2), a_pool(r1=9, r2=1, states=states)) == {"r2": 1}


def test_a_closed_cluster_keeps_what_it_has():
    pool = a_pool(r1=9, r2=9, states={"r1": State.CLOSED})
    assert placed(a_wish(4, had={"r1": 2}), pool) == {"r1": 2, "r2": 2}


def test_a_cluster_that_is_not_known_yet_keeps_what_it_has_even_if_the_size_changes():
    unknown = a_pool(r1=0, r2=9, states={"r1": State.CLOSED})
    assert placed(a_wish(4, had={"r1": 4}, had_slice=SLICE, slice_={"cpu": 2 * CPU}), unknown) == {"r1": 2}


def test_an_edit_by_hand_is_followed():
    pool = a_pool(r1=9, r2=9)
    edited = a_wish(2, had={"r1": 1, "r2": 1}, annotated={"r1": 2})
    assert (placed(edited, pool), plan(edited, pool).refused) == ({"r1": 2}, "")
    partly = a_wish(3, had={"r1": 2, "r2": 1}, annotated={"r2": 2})
    assert placed(partly, pool) == {"r1": 1, "r2": 2}, "the rest is placed by the policy"


@pytest.mark.parametrize(
    ("annotated", "why"),
    [
        ({"r1": 3}, "3 slice(s) exceed the quota, which is 2 slice(s)"),
        ({"r9": 1}, "r9 is not in the pool"),
        ({"r3": 1}, "r3 accepts no new slices: it is closed"),
        ({"r2": 2}, "r2 has capacity for 1 slice(s), not for 2"),
        ({"r2": 1}, "pods in r1 use 1 slice(s) there; delete them first"),
    ],
)
def test_an_edit_by_hand_that_cannot_be_followed_is_refused_and_the_plan_stays(annotated, why):
    pool = a_pool(r1=9, r2=1, r3=9, states={"r3": State.CLOSED})
    result = plan(a_wish(2, had={"r1": 1, "r2": 1}, used={"r1": 0.5}, annotated=annotated), pool)
    assert (result.placements, result.refused) == ({"r1": 1, "r2": 1}, why)


def test_an_edit_may_leave_running_pods_without_slices_if_eviction_is_allowed():
    wish = a_wish(1, had={"r1": 1}, used={"r1": 0.5}, annotated={"r2": 1}, may_evict=True)
    assert placed(wish, a_pool(r1=9, r2=9)) == {"r2": 1}


def test_cleared_placements_are_planned_anew_but_around_running_pods():
    wish = a_wish(2, had={"r1": 2}, annotated={})
    assert placed(wish, a_pool(r1=9, r2=9)) == {"r1": 1, "r2": 1}
    running = dataclasses.replace(wish, used={"r1": {"cpu": 2 * CPU}})
    assert placed(running, a_pool(r1=9, r2=9)) == {"r1": 2}


def test_placements_that_were_there_before_any_plan_are_kept():
    pool = a_pool(r1=9, r2=9)
    result = plan(a_wish(2, annotated={"r1": 2}), pool)
    assert (result.placements, result.refused) == ({"r1": 2}, "")
    assert placed(a_wish(3, annotated={"r1": 2, "gone": 1}), pool) == {"r1": 2, "r2": 1}


def test_edited_placements_get_no_more_than_the_free_capacity():
    full = a_pool(r1=2, r2=9).with_holding("t/other", Holding({"r1": 2}, SLICE))
    result = plan(a_wish(2, annotated={"r1": 2}), full)
    assert (result.placements, result.refused) == ({"r2": 2}, "r1 has capacity for 0 slice(s), not for 2")
    assert placed(a_wish(2, annotated={"r1": 2}, used={"r1": 1}), full) == {"r1": 1, "r2": 1}, "pods run there"


def test_a_quota_edited_while_the_scheduler_was_down_converges():
    edited = a_wish(3, had={"r1": 1, "r2": 1})
    first = plan(edited, a_pool(r1=9, r2=9))
    again = plan(a_wish(3, had=first.placements), a_pool(r1=9, r2=9).with_holding("t/ns", first.holding))
    assert first.placements == again.placements == {"r1": 2, "r2": 1}


def test_a_resource_that_no_cluster_offers_is_reported_as_missing():
    wish = SliceRequest("t/ns", {"cpu": CPU}, {"cpu": CPU, "example.com/gpu": CPU})
    missing = plan(wish, a_pool(r1=9)).missing
    assert missing.reasons == ("r1 has 0 example.com/gpu left, a slice needs 1 example.com/gpu",)


def test_slices_held_in_a_cluster_that_rejoins_the_pool_are_counted():
    pool = a_pool(r1=4).with_holding("t/other", Holding({"r1": 1, "r2": 3}, SLICE))
    assert pool.room("r2", SLICE) == 0
    joined = pool.with_member(Member("r2", {"cpu": 4 * CPU}))
    assert (joined.room("r2", SLICE), joined.without_member("r1").room("r1", SLICE)) == (1, 0)
    assert joined.holding("t/other") == Holding({"r1": 1, "r2": 3}, SLICE)


@pytest.mark.parametrize(
    "text", ["prefer " + ";".join(["region=eu:1"] * 20_000), "prefer " + ";".join(["a:1"] * 65), "x" * 5000]
)
def test_a_policy_has_a_size_and_a_number_of_preferences(text):
    with pytest.raises(policies.PolicyError, match="more than the maximum of") as refused:
        policies.parse(text)
    assert len(str(refused.value)) < 250


def test_a_preference_is_matched_once_for_each_cluster_however_many_slices_there_are():
    class Counted:
        matched = 0

        def matches(self, _labels):
            Counted.matched += 1
            return True

    wish = a_wish(3000, policy=policies.Prefer(((Counted(), 1),)))
    assert sum(placed(wish, a_pool(r1=2000, r2=2000)).values()) == 3000
    assert Counted.matched == 2


def test_annotations_without_a_recorded_plan_take_no_capacity_that_is_not_there():
    closed = a_pool(r1=1, r2=9, states={"r1": State.CLOSED})
    forged = {"annotated": {"r1": 4}, "used": {"r1": 4}}
    assert placed(a_wish(4, **forged, trusts_annotation=False), closed) == {"r1": 1, "r2": 3}
    assert placed(a_wish(4, **forged), closed) == {"r1": 4}, "a tenant of a former version"
    small = a_pool(r1=1, r2=9)
    assert placed(a_wish(4, **forged, trusts_annotation=False), small) == {"r1": 1, "r2": 3}
