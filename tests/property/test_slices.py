"""Plans of namespace slices against a checker that tries everything."""

import itertools
import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from hansa.scheduling.slicing import policies, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import plan
from hansa.scheduling.slicing.pool import Headroom, Member, Pool, State
from hansa.scheduling.slicing.slice_request import SliceRequest

CLUSTERS = ("r1", "r2", "r3")
POLICIES = (policies.Spread(), policies.Pack(), policies.parse("prefer size=big:3"))
SIZES = st.sampled_from(({"cpu": 1}, {"cpu": 2}, {"cpu": 1, "memory": 3}, {"cpu": 3, "memory": 2}))
NUMBERS = st.integers(0, 4)


def moved(had: Holding, placements: dict[str, int], size: slices.Slice) -> Fraction:
    """How many slices' worth left its cluster, counted in new slices."""
    worth = {cluster: slices.recut(number, had.slice, size) for cluster, number in had.placements.items()}
    return sum((max(Fraction(0), worth[cluster] - placements.get(cluster, 0)) for cluster in worth), Fraction(0))


@st.composite
def cases(draw):
    """A namespace whose quota or slice changed, in a pool that has room for all that it had."""
    old, size = draw(SIZES), draw(SIZES)
    had = {cluster: number for cluster in CLUSTERS if (number := draw(NUMBERS))}
    pool = Pool()
    for cluster in CLUSTERS:
        offer = {resource: draw(st.integers(0, 15)) for resource in ("cpu", "memory")}
        offer = {name: max(nano, old.get(name, 0) * had.get(cluster, 0)) for name, nano in offer.items()}
        pool = pool.with_member(Member(cluster, offer, {"size": draw(st.sampled_from(("big", "small")))}))
    quota = {name: draw(st.integers(1, 12)) for name in size}
    holding = Holding(had, old)
    policy = draw(st.sampled_from(POLICIES))
    return SliceRequest("ns", quota, size, annotated=had, planned=holding, policy=policy), pool.with_holding(
        "ns", holding
    )


@settings(max_examples=300, deadline=None)
@given(cases())
def test_as_much_as_fits_is_placed_and_as_little_as_possible_moves(case):
    request, pool = case
    result = plan(request, pool)
    wanted = slices.count(request.quota, request.slice)
    rooms = [pool.with_holding("ns", Holding()).room(cluster, request.slice) for cluster in CLUSTERS]
    possible = list(itertools.product(*(range(room + 1) for room in rooms)))
    total = min(wanted, sum(rooms))
    best = min(
        moved(request.planned, dict(zip(CLUSTERS, one, strict=True)), request.slice)
        for one in possible
        if sum(one) == total
    )
    assert sum(result.placements.values()) == total
    assert all(result.placements.get(cluster, 0) <= room for cluster, room in zip(CLUSTERS, rooms, strict=True))
    assert moved(request.planned, result.placements, request.slice) == best
    assert (result.missing.slices if result.missing else 0) == wanted - total


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_plan_that_was_followed_is_planned_again_as_it_is(case):
    request, pool = case
    result = plan(request, pool)
    followed = SliceRequest(
        "ns", request.quota, request.slice, annotated=result.placements, planned=result.holding, policy=request.policy
    )
    again = plan(followed, pool.with_holding("ns", result.holding))
    assert (again.holding, again.refused, again.notes) == (result.holding, "", ())


@settings(max_examples=150, deadline=None)
@given(cases(), st.data())
def test_running_pods_never_lose_their_slices(case, data):
    request, pool = case
    used = {
        cluster: {name: data.draw(st.integers(0, number * nano)) for name, nano in request.planned.slice.items()}
        for cluster, number in request.planned.placements.items()
    }
    same_size = SliceRequest(
        "ns", request.quota, request.planned.slice, annotated=request.annotated, planned=request.planned, used=used
    )
    if slices.count(same_size.quota, same_size.slice):
        result = plan(same_size, pool)
        needed = {cluster: slices.needed(amounts, same_size.slice) for cluster, amounts in used.items()}
        assert all(result.placements.get(cluster, 0) >= number for cluster, number in needed.items())


def test_two_hundred_namespaces_over_five_clusters_never_hold_more_than_there_is():
    """A long life: quotas, slices, pods and clusters change at random, and after each change every sum is checked."""
    chance = random.Random(7)
    sizes = ({"cpu": 2, "memory": 4}, {"cpu": 1, "memory": 1}, {"cpu": 3, "memory": 2})
    pool, wishes = Pool(), {}
    for number in range(5):
        offer = {"cpu": chance.randint(100, 400), "memory": chance.randint(100, 600)}
        pool = pool.with_member(Member(f"r{number}", offer, headroom=Headroom(percent=chance.choice((0, 10)))))
    waiting = 0
    for _step in range(2_000):
        namespace = f"ns{chance.randrange(200)}"
        quota = {} if chance.random() < 0.1 else {"cpu": chance.randint(1, 20), "memory": chance.randint(1, 20)}
        size = chance.choice(sizes)
        before = pool.holding(namespace)
        annotated = before.placements if chance.random() < 0.9 else {}
        request = SliceRequest(
            namespace,
            quota,
            size,
            annotated=annotated,
            planned=before,
            policy=chance.choice(POLICIES[:2]),
            may_be_partial=chance.random() < 0.5,
        )
        result = plan(request, pool)
        pool = pool.with_holding(namespace, result.holding)
        wishes[namespace] = result
        waiting += result.missing is not None
        assert_nothing_is_given_twice(pool, wishes)
    assert waiting > 100, "the pool was full at times"
    assert_lost_slices_come_back(pool, wishes, chance)


def assert_nothing_is_given_twice(pool, plans) -> None:
    for name, member in pool.members.items():
        for resource, offered in member.offer.items():
            held = sum(one.holding.slice.get(resource, 0) * one.placements.get(name, 0) for one in plans.values())
            assert held <= member.headroom.left(resource, offered)


def assert_lost_slices_come_back(pool, plans, chance) -> None:
    lost = Member("r0", pool.members["r0"].offer, state=State.LOST)
    pool = pool.with_member(lost)
    for namespace in chance.sample(sorted(plans), len(plans)):
        had = plans[namespace].holding
        if not had.placements.get("r0"):
            continue
        quota = slices.times(had.slice, len(had))
        result = plan(SliceRequest(namespace, quota, had.slice, annotated=had.placements, planned=had), pool)
        pool = pool.with_holding(namespace, result.holding)
        plans[namespace] = result
        stayed = {cluster: number for cluster, number in had.placements.items() if cluster != "r0"}
        assert "r0" not in result.placements
        assert all(result.placements[cluster] >= number for cluster, number in stayed.items()), "nothing else moved"
        assert_nothing_is_given_twice(pool, plans)
