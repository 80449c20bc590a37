"""Views follow single changes; earlier views are never modified."""

from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.scheduling import node, pod_request
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.persistent_map import PersistentMap
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, answer

CPU = quantity.UNIT


def free(view, name="n1"):
    return view.node(name).free["cpu"] / CPU


def test_an_old_view_stays_as_it_was():
    old = a_view(a_node("n1"))
    new = old.with_pod(a_pod("p", on="n1"))
    assert (free(old), free(new)) == (4, 3)
    assert (len(old.pods), len(new.pods)) == (0, 1)


def test_pods_count_while_they_are_bound_and_not_finished():
    view = a_view(a_node("n1"))
    waiting, bound, done = a_pod("p"), a_pod("p", on="n1"), a_pod("p", on="n1", phase="Succeeded")
    assert [free(view.with_pod(one)) for one in (waiting, bound, done)] == [4, 3, 4]
    assert free(view.with_pod(bound).with_pod(done)) == 4
    assert free(view.with_pod(bound).without_pod(bound.key)) == 4


def test_pods_that_come_before_their_node_are_remembered():
    view = a_view(a_pod("p", on="n1"), a_node("n1"))
    assert free(view) == 3
    again = view.without_node("n1")
    assert again.node("n1") is None
    assert free(again.with_node(a_node("n1", cpu="8"))) == 7


def test_nothing_new_is_the_same_view():
    view = a_view(a_node("n1"), a_pod("p", on="n1"))
    assert view.with_node(a_node("n1")) is view
    assert view.with_pod(a_pod("p", on="n1")) is view
    assert view.without_node("n9") is view
    assert view.without_pod(a_pod("q").key) is view
    assert view.at(1e9) is view


def test_a_node_that_changes_its_shape_or_its_own_labels_is_found_by_the_new_ones_only():
    view = a_view(a_node("n1", labels={ZONE: "a"})).with_node(a_node("n1", labels={ZONE: "b"}))
    assert [group.shape.labels for group in view.groups.values()] == [{ZONE: "b"}]
    renamed = view.with_node(a_node("n1", labels={ZONE: "b", HOST: "other"}))
    assert (
        answer(a_pod(nodeSelector={HOST: "n1"}), renamed) == "r1: 1 node(s) didn't match Pod's node affinity/selector"
    )
    assert answer(a_pod(nodeSelector={HOST: "other"}), renamed) == "r1/n1"
    assert list(renamed.without_node("n1").groups) == []


def test_a_node_may_bear_more_than_it_offers():
    view = a_view(a_node("n1"), a_pod("p", on="n1", cpu="6"))
    assert free(view) == -2
    assert answer(a_pod(), view) == "r1: Insufficient cpu (requested 1, most free 0 on node n1)"


def test_a_reservation_takes_room_until_the_pod_is_bound():
    request, view = pod_request.of_pod(a_pod("p")), a_view(a_node("n1"), a_node("n2"))
    reserved = view.reserving(a_pod("p").key, request, node="n1", until=10)
    assert (free(reserved), free(reserved.at(9.9)), free(reserved.at(10))) == (3, 3, 4)
    created = reserved.with_pod(a_pod("p"))
    assert free(created) == 3, "the pod is there, but has no node yet"
    bound = created.with_pod(a_pod("p", on="n2"))
    assert (free(bound), free(bound, "n2")) == (4, 3)
    assert free(bound.at(10), "n2") == 3


def test_a_reservation_ends_with_the_pod_and_can_be_made_anew():
    request, view = pod_request.of_pod(a_pod("p")), a_view(a_node("n1"), a_node("n2"))
    key = a_pod("p").key
    reserved = view.reserving(key, request, node="n1", until=10)
    assert free(reserved.without_pod(key)) == 4
    assert free(reserved.with_pod(a_pod("p", phase="Failed"))) == 4
    moved = reserved.reserving(key, request, node="n2", until=20)
    assert (free(moved), free(moved.at(10), "n2")) == (4, 3)
    bound = view.with_pod(a_pod("p", on="n1"))
    assert bound.reserving(key, request, node="n2", until=10) is bound


def test_a_view_has_the_labels_of_its_cluster_and_the_reason_why_it_is_closed():
    view = a_view(a_node("n1")).with_cluster({"region": "eu"}, closed="was lost")
    assert (view.labels, view.closed, len(list(view.nodes()))) == ({"region": "eu"}, "was lost", 1)


def test_a_node_that_leaves_takes_no_new_pods():
    leaving = a_node("n1").with_metadata(deletion_timestamp="2026-11-15T00:00:00Z")
    assert answer(a_pod(), a_view(Object.of(leaving.to_dict()))) == "r1: 1 node(s) were unschedulable"


def test_a_persistent_map_shares_and_never_changes():
    maps = [PersistentMap()]
    for number in range(3000):
        maps.append(maps[-1].having(number, str(number)))
    assert all(
        dict(one.items()) == {n: str(n) for n in range(size)} for size, one in enumerate(maps) if size % 499 == 0
    )
    emptied = maps[-1]
    for number in range(0, 3000, 2):
        emptied = emptied.without(number)
    assert sorted(emptied) == list(range(1, 3000, 2))
    assert (len(emptied), len(maps[-1]), 7 in emptied, 8 in emptied) == (1500, 3000, True, False)
    assert maps[5].without(77) is maps[5]
    assert len(maps[1].without(0)) == 0
    assert maps[2].having(0, "again").get(0) == "again"


def test_nodes_that_are_added_at_once_are_as_those_added_one_by_one():
    for count in (0, 1, 100, 1000):
        labels = [{ZONE: f"z{number % 7}", "serial": f"s{number % 300}"} for number in range(count)]
        made = [a_node(f"n{number}", labels=one) for number, one in enumerate(labels)]
        one_by_one, at_once = a_view(*made), ClusterView.of_nodes("r1", (node.of_object(one, {}) for one in made))
        assert {one.name: one.labels() for one in at_once.nodes()} == {
            f"n{number}": {HOST: f"n{number}", **one} for number, one in enumerate(labels)
        }
        for pod in (a_pod(), a_pod(nodeSelector={HOST: "n7"}), a_pod(nodeSelector={"serial": "s5", ZONE: "z5"})):
            assert answer(pod, at_once) == answer(pod, one_by_one)
        if count:
            assert answer(a_pod(), at_once.with_node(a_node("late", cpu="64", labels={ZONE: "z9"}))) == "r1/late"
