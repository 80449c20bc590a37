"""The cluster of a pod, within the slices of its namespace."""

from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName
from hansa.scheduling import pod_request
from hansa.scheduling.slicing import pod_choice, slices
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.pod_choice import Assignment, Assignments
from scheduling_things import a_node, a_pod, a_view

SLICE = slices.parse('{"cpu":"100m", "memory":"100Mi"}')
POD = {"requests": {"cpu": "100m", "memory": "100Mi"}}
BOTH = Holding({"r1": 1, "r2": 1}, SLICE)
VIEWS = {name: a_view(a_node("n1"), cluster=name) for name in ("r1", "r2", "r3")}


def chosen(pod, holding=BOTH, assignments=None, **more):
    used = (assignments or Assignments()).used(pod.namespace)
    verdict = pod_choice.choose(pod_request.of_pod(pod), holding, used=used, **{"views": VIEWS, **more})
    return verdict.best.cluster if verdict.best else str(verdict)


def with_assignment(*assignments):
    """Pods that were given a cluster."""
    all_seats = Assignments()
    for name, cluster, phase in assignments:
        pod = a_pod(name, phase=phase, **POD)
        all_seats = all_seats.with_assignment(pod.key, pod_choice.assignment_of(pod, cluster))
    return all_seats


def test_the_seeds_first_replica_goes_to_one_cluster_and_the_second_to_the_other():
    first = chosen(a_pod("a", **POD))
    second = chosen(a_pod("b", **POD), assignments=with_assignment(("a", first, "Running")))
    assert (first, second) == ("r1", "r2")


def test_a_pod_that_fits_no_slice_waits_with_a_reason_for_each_cluster():
    full = with_assignment(("a", "r1", "Running"), ("b", "r2", "Pending"))
    budget = "in the namespace's slices"
    memory = f"Insufficient memory {budget} (requested 100Mi, left 0)"
    missing = f"Insufficient cpu {budget} (requested 0.1, left 0); {memory}"
    assert chosen(a_pod("c", **POD), assignments=full) == f"r1: {missing}. r2: {missing}"


def test_finished_pods_free_their_room():
    full = with_assignment(("a", "r1", "Running"), ("b", "r2", "Running"))
    done = pod_choice.assignment_of(a_pod("b", phase="Succeeded", **POD), "r2")
    assert done is None
    assert chosen(a_pod("c", **POD), assignments=full.with_assignment(NamespacedName("shop", "b"), done)) == "r2"


def test_only_clusters_where_the_namespace_is_placed_are_asked():
    assert chosen(a_pod(**POD), Holding({"r3": 1}, SLICE)) == "r3"
    assert chosen(a_pod(**POD), Holding({}, SLICE)) == "no clusters"


def test_slices_of_one_cluster_serve_together():
    large = a_pod(requests={"cpu": "150m", "memory": "100Mi"})
    assert "Insufficient cpu in the namespace's slices (requested 0.15, left 0.1)" in chosen(large)
    assert chosen(large, Holding({"r1": 1, "r2": 2}, SLICE)) == "r2"


def test_a_slice_without_a_node_that_fits_is_of_no_use():
    views = VIEWS | {"r1": a_view(a_node("n1", cpu="50m"), cluster="r1")}
    assert chosen(a_pod(**POD), views=views) == "r2"
    tight = views | {"r2": a_view(cluster="r2")}
    insufficient = "Insufficient cpu (requested 0.1, most free 0.05 on node n1)"
    assert chosen(a_pod(**POD), views=tight) == f"r1: {insufficient}. r2: no nodes"


def test_avoided_and_unknown_clusters_have_a_reason():
    assert chosen(a_pod(**POD), avoided={"r1": "could not schedule it"}) == "r2"
    unknown = {"r2": VIEWS["r2"]}
    refused = chosen(a_pod(**POD), views=unknown, avoided={"r2": "could not schedule it"})
    assert refused == "r1: not synced yet. r2: could not schedule it"


def test_slices_fill_evenly():
    wide = Holding({"r1": 4, "r2": 4}, SLICE)
    assignments, order = Assignments(), []
    for number in range(4):
        pod = a_pod(f"p{number}", **POD)
        order.append(cluster := chosen(pod, wide, assignments))
        assignments = assignments.with_assignment(pod.key, pod_choice.assignment_of(pod, cluster))
    assert order == ["r1", "r2", "r1", "r2"]


def test_seats_follow_single_changes_and_old_ones_stay():
    pod, assignment = NamespacedName("shop", "a"), Assignment("r1", {"cpu": quantity.UNIT})
    empty = Assignments()
    one = empty.with_assignment(pod, assignment)
    moved = one.with_assignment(pod, Assignment("r2", {"cpu": 2 * quantity.UNIT}))
    assert [dict(assignments.used("shop")) for assignments in (empty, one, moved)] == [
        {},
        {"r1": {"cpu": quantity.UNIT}},
        {"r2": {"cpu": 2 * quantity.UNIT}},
    ]
    assert one.with_assignment(pod, assignment) is one
    assert (one.get(pod), one.with_assignment(pod, None).used("shop")) == (assignment, {})
    assert pod_choice.assignment_of(a_pod(), "") is None
