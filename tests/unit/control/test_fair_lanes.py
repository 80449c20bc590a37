import collections

from hypothesis import given
from hypothesis import strategies as st

from hansa.control import fair_lanes

CREDIT = 4.0


def lanes(weights=None, *, width=10**9, credit=CREDIT, **more):
    weights = weights or {}
    return fair_lanes.Lanes(lambda group: weights.get(group, 1.0), width=width, credit=credit, **more)


def serve(queue, count):
    served = []
    for _ in range(count):
        served.append(queue.pop())
        queue.release(served[-1])
    return [group for group, _ in served]


def fill(queue, group, count):
    for number in range(count):
        queue.push((group, number), group)


@given(
    st.dictionaries(st.sampled_from("abcde"), st.floats(0.1, 10), min_size=2),
    st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 30)), max_size=8),
    st.integers(0, 100),
)
def test_groups_that_always_have_keys_are_served_by_weight_within_a_fixed_bound(weights, before, already_served):
    queue = lanes(weights)
    for group, count in before:
        fill(queue, group, count)
    serve(queue, min(already_served, len(queue)))
    for group in weights:
        fill(queue, group, 500)
    served = collections.Counter()
    for group in serve(queue, 400):
        served[group] += 1
        for one, weight in weights.items():
            for other, other_weight in weights.items():
                ahead = served[one] / weight - served[other] / other_weight
                assert ahead <= CREDIT + 1 / weight + 1 / other_weight + 1e-6


def test_a_group_that_was_idle_goes_before_a_backlog_for_as_many_keys_as_its_credit():
    queue = lanes()
    fill(queue, "greedy", 1000)
    serve(queue, 500)
    fill(queue, "small", 8)
    assert serve(queue, 4) == ["small"] * 4
    assert collections.Counter(serve(queue, 6)) in ({"small": 3, "greedy": 3}, {"small": 4, "greedy": 2})


def test_idleness_is_not_saved_up_beyond_the_credit_nor_earned_by_coming_back_often():
    queue = lanes()
    fill(queue, "greedy", 1000)
    served = collections.Counter()
    for _ in range(200):
        queue.push(("bursty", len(served)), "bursty")
        served.update(serve(queue, 1))
    assert served["bursty"] <= served["greedy"] + CREDIT + 2


def test_a_group_has_at_most_its_width_in_work_and_goes_on_when_one_is_released():
    queue = lanes(width=2)
    fill(queue, "a", 5)
    fill(queue, "b", 1)
    taken = [queue.pop(), queue.pop(), queue.pop()]
    assert collections.Counter(group for group, _ in taken) == {"a": 2, "b": 1}
    assert not queue.is_ready
    queue.release(("a", 0))
    assert queue.is_ready
    assert queue.pop() == ("a", 2)
    assert not queue.is_ready


def test_a_backlog_has_half_the_width_and_a_newcomer_beside_it_all_of_its_own():
    queue = lanes(width=4)
    fill(queue, "greedy", 100)
    serve(queue, 20)
    held = [queue.pop() for _ in range(2)]
    assert not queue.is_ready
    fill(queue, "small", 4)
    assert [queue.pop()[0] for _ in range(4)] == ["small"] * 4
    assert not queue.is_ready
    queue.release(held[0])
    assert queue.pop()[0] == "greedy"


def in_work(queue):
    """How many keys of each group are taken until none is ready, once all credit is used up."""
    serve(queue, 100)
    taken = collections.Counter()
    while queue.is_ready:
        taken[queue.pop()[0]] += 1
    return taken


def test_backlogs_share_what_one_of_them_would_have_by_weight_and_none_is_left_out():
    queue = lanes({"heavy": 2.0}, width=16)
    for group in ("a", "b", "heavy"):
        fill(queue, group, 100)
    assert in_work(queue) == {"a": 2, "b": 2, "heavy": 4}
    queue = lanes(width=4)
    for group in "abcde":
        fill(queue, group, 100)
    assert in_work(queue) == dict.fromkeys("abcde", 1)


def test_backlogs_for_different_servers_take_nothing_from_each_other():
    queue = lanes(width=16, server=lambda group: group[0])
    for group in ("a1", "a2", "b1"):
        fill(queue, group, 100)
    assert in_work(queue) == {"a1": 4, "a2": 4, "b1": 8}


def test_backlogs_are_served_by_weight_also_where_all_they_may_have_in_work_is_waited_for():
    queue = lanes({"light": 1.0, "heavy": 4.0}, width=32)
    for group in ("light", "heavy"):
        fill(queue, group, 1000)
    served, asked = collections.Counter(), collections.deque()
    while served["heavy"] < 1000:
        while queue.is_ready:
            asked.append(queue.pop())
        queue.release(asked[0])  # servers answer in the order in which they are asked
        served[asked.popleft()[0]] += 1
    assert 200 <= served["light"] <= 300
    for key in list(asked):
        queue.release(key)
    light = [queue.pop() for _ in range(16)]
    assert {group for group, _ in light} == {"light"}, "who is alone has the width of a backlog"


def test_a_backlog_goes_on_even_if_the_width_is_one():
    queue = lanes(width=1)
    fill(queue, "greedy", 50)
    assert serve(queue, 50) == ["greedy"] * 50


def test_a_weight_that_changes_counts_from_the_next_key_on():
    weights = {"a": 1.0, "b": 1.0}
    queue = lanes(weights)
    fill(queue, "a", 500)
    fill(queue, "b", 500)
    assert collections.Counter(serve(queue, 100)) == {"a": 50, "b": 50}
    weights["a"] = 4.0
    assert collections.Counter(serve(queue, 100))["a"] in (79, 80, 81)


def test_keys_of_one_group_keep_their_order():
    queue = lanes()
    fill(queue, "a", 50)
    assert [queue.pop()[1] for _ in range(50)] == list(range(50))


def test_nothing_remains_of_groups_after_an_idle_moment():
    queue = lanes()
    for number in range(1000):
        queue.push((f"tenant-{number}", 0), f"tenant-{number}")
    serve(queue, 1000)
    assert queue._lanes == {}


def test_a_key_whose_group_changes_while_it_is_in_work_is_released_where_it_was_taken():
    queue = fair_lanes.Lanes(lambda _: 1.0, width=1, credit=CREDIT)
    queue.push("key", "a")
    assert queue.pop() == "key"
    queue.release("key")
    queue.push("key", "b")
    assert queue.depths() == {"b": 1}
    assert queue.pop() == "key"
    queue.release("key")
    assert not queue.is_ready


def test_a_lane_of_slow_keys_narrows_to_one_and_widens_again_with_quick_ones():
    lanes = fair_lanes.Lanes(lambda _: 1.0, width=8, credit=10**6)
    for number in range(40):
        lanes.push(("slow", number), "slow")

    def taken():
        found = []
        while lanes.is_ready:
            found.append(lanes.pop())
        return found

    begun = taken()
    for key in begun:
        lanes.narrow(key)
    for key in begun:
        lanes.release(key)
    widths = []
    for _ in range(5):
        begun = taken()
        widths.append(len(begun))
        for key in begun:
            lanes.release(key)
    assert widths == [1, 2, 8, 8, 8]


def test_a_narrow_lane_is_still_narrow_when_its_next_key_comes():
    lanes = fair_lanes.Lanes(lambda _: 1.0, width=4, credit=10**6)
    lanes.push("first", "slow")
    lanes.narrow(lanes.pop())
    lanes.release("first")  # nothing is left: a new busy period
    for key in "abcd":
        lanes.push(key, "slow")
    assert [lanes.pop(), lanes.pop(), lanes.is_ready] == ["a", "b", False]
