"""Resource requests of pods, counted as by kube-scheduler."""

import pytest

from hansa.model import capacity, requests
from lower_things import container, pod


def taken(one):
    return capacity.resource_list(requests.of_bound_pod(one).amounts)


def test_the_containers_of_a_pod_are_added_up_and_the_pod_takes_a_slot():
    two = pod(containers=[container("a", cpu="100m", memory="1Gi"), container("b", cpu="1.5", gpu="2")])
    assert taken(two) == {"cpu": "1600m", "memory": "1Gi", "example.com/gpu": "2", "pods": "1"}


def test_the_largest_init_container_counts_if_it_needs_more_than_all_containers():
    one = pod(containers=[container(cpu="1", memory="1Gi")], initContainers=[container("i", cpu="3", memory="1Mi")])
    assert taken(one) == {"cpu": "3", "memory": "1Gi", "pods": "1"}


def test_a_sidecar_counts_beside_the_containers_and_beside_later_init_containers():
    steps = [container("a", cpu="1"), container("s", sidecar=True, cpu="2"), container("b", cpu="4")]
    assert taken(pod(containers=[container(cpu="1")], initContainers=steps))["cpu"] == "6"
    assert taken(pod(containers=[container(cpu="5")], initContainers=steps))["cpu"] == "7"


def test_overhead_is_added():
    assert taken(pod(overhead={"cpu": "250m", "memory": "64Mi"})) == {"cpu": "1250m", "memory": "64Mi", "pods": "1"}


def test_requests_of_the_pod_as_a_whole_replace_those_of_its_containers_where_the_api_allows_them():
    whole = pod(
        containers=[container(cpu="1", memory="1Gi", gpu="1")],
        resources={"requests": {"cpu": "3", "hugepages-2Mi": "4Mi"}},
        overhead={"cpu": "1"},
    )
    assert taken(whole) == {
        "cpu": "4",
        "memory": "1Gi",
        "example.com/gpu": "1",
        "hugepages-2Mi": "4Mi",
        "pods": "1",
    }


def resized(*, asked, allocated, actual, **status):
    reported = {"name": "c", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
    return taken(pod(containers=[container(cpu=asked)], status={"containerStatuses": [reported], **status}))["cpu"]


@pytest.mark.parametrize("order", [("3", "2", "1"), ("1", "3", "2"), ("2", "1", "3")])
def test_while_a_resize_is_under_way_the_larger_amount_counts(order):
    asked, allocated, actual = order
    assert resized(asked=asked, allocated=allocated, actual=actual) == "3"


def test_a_resize_that_can_never_come_counts_for_nothing():
    infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    assert resized(asked="64", allocated="2", actual="1", conditions=[infeasible]) == "2"


def test_a_resize_of_a_sidecar_counts_and_that_of_an_init_container_does_not():
    reported = [
        {"name": name, "allocatedResources": {"cpu": "5"}, "resources": {"requests": {"cpu": "5"}}} for name in "si"
    ]
    steps = [container("s", sidecar=True, cpu="1"), container("i", cpu="1")]
    one = pod(containers=[container(cpu="1")], initContainers=steps, status={"initContainerStatuses": reported})
    assert taken(one)["cpu"] == "6"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_takes_nothing(phase):
    assert requests.of_bound_pod(pod(phase=phase)) is None


def test_a_pod_takes_from_its_node_as_soon_as_it_is_bound():
    assert requests.of_bound_pod(pod(on="", phase="Pending")) is None
    assert requests.of_bound_pod(pod(on="n7", phase="Pending")).node == "n7"


def test_a_pod_that_asks_for_nothing_takes_a_slot():
    assert taken(pod(containers=[{"name": "c", "image": "i"}])) == {"pods": "1"}


def test_a_pod_asks_for_the_same_before_it_is_bound():
    waiting, bound = (pod(on=node, containers=[container(cpu="1500m")]) for node in ("", "n1"))
    assert requests.of_pod(waiting) == requests.of_bound_pod(bound).amounts
    assert requests.of_bound_pod(waiting) is None
    assert [requests.is_finished(pod(phase=phase)) for phase in ("Pending", "Running", "Failed")] == [0, 0, 1]
