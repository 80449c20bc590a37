"""The cluster of a pod, within the slices of its namespace."""

from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName
from hansa.scheduling import pod_request
from hansa.scheduling.slicing import pod_choice, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Seat, Seats
from scheduling_things import a_node, a_pod, a_view

SLICE = slices.read('{"cpu":"100m", "memory":"100Mi"}')
POD = {"requests": {"cpu": "100m", "memory": "100Mi"}}
BOTH = Holding({"r1": 1, "r2": 1}, SLICE)
VIEWS = {name: a_view(a_node("n1"), cluster=name) for name in ("r1", "r2", "r3")}


def chosen(pod, holding=BOTH, seats=None, **more):
    used = (seats or Seats()).used(pod.namespace)
    verdict = pod_choice.choose(pod_request.of_pod(pod), holding, used=used, **{"views": VIEWS, **more})
    return verdict.best.cluster if verdict.best else str(verdict)


def seated(*seats):
    """Pods that were given a cluster."""
    all_seats = Seats()
    for name, cluster, phase in seats:
        pod = a_pod(name, phase=phase, **POD)
        all_seats = all_seats.seated(pod.key, pod_choice.seat_of(pod, cluster))
    return all_seats


def test_the_seeds_first_replica_goes_to_one_cluster_and_the_second_to_the_other():
    first = chosen(a_pod("a", **POD))
    second = chosen(a_pod("b", **POD), seats=seated(("a", first, "Running")))
    assert (first, second) == ("r1", "r2")


def test_a_pod_that_no_slice_has_room_for_waits_with_a_reason_for_each_cluster():
    full = seated(("a", "r1", "Running"), ("b", "r2", "Pending"))
    missing = "the namespace's slices have 0 of 0.1 CPU left; the namespace's slices have 0 of 100Mi memory left"
    assert chosen(a_pod("c", **POD), seats=full) == f"r1: {missing}. r2: {missing}"


def test_finished_pods_free_their_room():
    full = seated(("a", "r1", "Running"), ("b", "r2", "Running"))
    done = pod_choice.seat_of(a_pod("b", phase="Succeeded", **POD), "r2")
    assert done is None
    assert chosen(a_pod("c", **POD), seats=full.seated(NamespacedName("shop", "b"), done)) == "r2"


def test_only_clusters_where_the_namespace_is_placed_are_asked():
    assert chosen(a_pod(**POD), Holding({"r3": 1}, SLICE)) == "r3"
    assert chosen(a_pod(**POD), Holding({}, SLICE)) == "no clusters"


def test_slices_of_one_cluster_serve_together():
    large = a_pod(requests={"cpu": "150m", "memory": "100Mi"})
    assert "slices have 0.1 of 0.15 CPU left" in chosen(large)
    assert chosen(large, Holding({"r1": 1, "r2": 2}, SLICE)) == "r2"


def test_a_slice_without_a_node_that_fits_is_of_no_use():
    views = VIEWS | {"r1": a_view(a_node("n1", cpu="50m"), cluster="r1")}
    assert chosen(a_pod(**POD), views=views) == "r2"
    tight = views | {"r2": a_view(cluster="r2")}
    assert chosen(a_pod(**POD), views=tight) == "r1: no node with 0.1 CPU free; largest 0.05 on n1. r2: no nodes"


def test_clusters_that_are_avoided_or_not_known_yet_say_so():
    assert chosen(a_pod(**POD), avoided={"r1": "could not schedule it"}) == "r2"
    unknown = {"r2": VIEWS["r2"]}
    refused = chosen(a_pod(**POD), views=unknown, avoided={"r2": "could not schedule it"})
    assert refused == "r1: is not known yet. r2: could not schedule it"


def test_slices_fill_evenly():
    wide = Holding({"r1": 4, "r2": 4}, SLICE)
    seats, order = Seats(), []
    for number in range(4):
        pod = a_pod(f"p{number}", **POD)
        order.append(cluster := chosen(pod, wide, seats))
        seats = seats.seated(pod.key, pod_choice.seat_of(pod, cluster))
    assert order == ["r1", "r2", "r1", "r2"]


def test_seats_follow_single_changes_and_old_ones_stay():
    pod, seat = NamespacedName("shop", "a"), Seat("r1", {"cpu": quantity.UNIT})
    empty = Seats()
    one = empty.seated(pod, seat)
    moved = one.seated(pod, Seat("r2", {"cpu": 2 * quantity.UNIT}))
    assert [dict(seats.used("shop")) for seats in (empty, one, moved)] == [
        {},
        {"r1": {"cpu": quantity.UNIT}},
        {"r2": {"cpu": 2 * quantity.UNIT}},
    ]
    assert one.seated(pod, seat) is one
    assert (one.seat(pod), one.seated(pod, None).used("shop")) == (seat, {})
    assert pod_choice.seat_of(a_pod(), "") is None
