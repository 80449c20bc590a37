"""What scheduling costs: a verdict over ten clusters of a thousand nodes, a view that follows one change, plans."""

import functools
import gc
import time
import timeit
from collections.abc import Callable

import pytest

from figures import figure
from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName, Object
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.placed_pods import PlacedPod, labels_of
from hansa.scheduling.slicing import pod_choice
from hansa.scheduling.slicing.placements import Holding
from hansa.scheduling.slicing.planning import plan
from hansa.scheduling.slicing.pod_choice import Assignment, Assignments
from hansa.scheduling.slicing.pool import Member, Pool
from hansa.scheduling.slicing.slice_request import SliceRequest

CLUSTERS, NODES, PODS = 10, 1_000, 10_000  # nodes and pods of each cluster
MILLISECONDS, MICROSECONDS = 1e3, 1e6


def a_node(number: int, *, alone: bool = False) -> Object:
    """One of a thousand: three zones, some tainted. Alone in its shape, it has a label that no other has."""
    labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/zone": f"z{number % 3}"}
    labels |= {"example.com/serial": str(number)} if alone else {}
    taints = [{"key": "gpu", "effect": "NoSchedule"}] if number % 10 == 0 else []
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": labels},
            "spec": {"taints": taints},
            "status": {
                "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
    )


def a_pod(cpu: str = "1", **spec: object) -> pod_request.PodRequest:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    metadata = {"name": "new", "namespace": "ns1", "labels": {"app": "a1"}}
    return pod_request.of_pod(
        Object.of({"kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}})
    )


def placed(number: int) -> tuple[NamespacedName, PlacedPod]:
    """Every node bears ten pods; one half of the nodes has little CPU left, the other half little memory."""
    scarce = ("cpu", "memory")[number % NODES % 2]
    unit = {"cpu": 15 * quantity.UNIT // 10, "memory": 6 * quantity.UNIT << 30}
    amounts = {"cpu": quantity.UNIT // 10, "memory": quantity.UNIT << 28, "pods": quantity.UNIT}
    amounts[scarce] = unit[scarce]
    namespace, labels = f"ns{number % 100}", labels_of({"app": f"a{number % 1000}"})
    return NamespacedName(namespace, f"p{number}"), PlacedPod(f"n{number % NODES}", amounts, namespace, labels)


def a_view(cluster: str, *, alone: bool = False, nodes: int = NODES) -> ClusterView:
    view = ClusterView(cluster)
    for number in range(nodes):
        view = view.with_node(a_node(number, alone=alone))
    for number in (number for number in range(PODS) if number % NODES < nodes):
        view = view.with_placed_pod(*placed(number))
    return view


@pytest.fixture(scope="module")
def views() -> list[ClusterView]:
    cpu = time.process_time()
    views = [a_view(f"r{number}") for number in range(CLUSTERS)]
    print()
    figure("views of 10,000 nodes and 100,000 pods, one by one, s", time.process_time() - cpu, most=10)
    gc.freeze()
    return views


def cost(work: Callable[[], object], number: int = 5) -> float:
    """Seconds of CPU, in the calmest of some moments."""
    return min(timeit.Timer(work, timer=time.process_time).repeat(repeat=5, number=number)) / number


ZONE = "topology.kubernetes.io/zone"
APART = {"labelSelector": {"matchLabels": {"app": "a1"}}, "topologyKey": "kubernetes.io/hostname"}
SPREAD = {"labelSelector": {"matchLabels": {"app": "a1"}}, "topologyKey": ZONE, "maxSkew": 20}
ASKED = {
    "fits": a_pod("500m"),
    "fits nowhere": a_pod("32"),
    "asks for what is free, but nowhere together": pod_request.of_pod(
        Object.of(
            {
                "kind": "Pod",
                "metadata": {"name": "new", "namespace": "ns1"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "8", "memory": "32Gi"}}}]},
            }
        )
    ),
    "selects a zone": a_pod("500m", nodeSelector={ZONE: "z1"}),
    "is pinned to a node": a_pod("500m", nodeSelector={"kubernetes.io/hostname": "n501"}),
    "must be apart": a_pod(
        "500m", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}
    ),
    "must be spread over zones": a_pod("500m", topologySpreadConstraints=[SPREAD]),
    "must be spread over nodes": a_pod(
        "500m", topologySpreadConstraints=[SPREAD | {"topologyKey": "kubernetes.io/hostname"}]
    ),
}


def test_what_a_verdict_costs(views: list[ClusterView]) -> None:
    for name, request in ASKED.items():
        figure(
            f"verdict on a pod that {name}, ms",
            cost(lambda request=request: evaluation.verdict(request, views)) * MILLISECONDS,  # type: ignore[misc]
            most=5,
        )
    alone = [a_view(f"r{number}", alone=True) for number in range(2)]
    for name, request in ASKED.items():
        figure(
            f"the same over nodes of which no two are alike: {name}, ms",
            cost(lambda request=request: evaluation.verdict(request, alone)) * CLUSTERS / len(alone) * MILLISECONDS,  # type: ignore[misc]
            most=10,
        )


@pytest.mark.parametrize("alone", [False, True], ids=["alike", "no two alike"])
def test_how_a_verdict_grows_with_its_clusters(alone: bool) -> None:
    print()
    for nodes in (10, 30, 100, 1_000):
        every = [a_view(f"r{number}", alone=alone, nodes=nodes) for number in range(CLUSTERS)]
        for name in ("fits", "fits nowhere", "asks for what is free, but nowhere together", "must be apart"):
            figure(
                f"{CLUSTERS} x {nodes} nodes, {'no two alike' if alone else 'alike'}: {name}, ms",
                cost(functools.partial(evaluation.verdict, ASKED[name], every)) * MILLISECONDS,
                most=10,
            )


def test_what_a_change_costs(views: list[ClusterView]) -> None:
    view, request, (key, one) = views[0], ASKED["fits"], placed(77)
    node = a_node(501)
    changed = Object.of(node.to_dict() | {"status": {**node.status, "allocatable": {"cpu": "8", "pods": "20"}}})
    new = NamespacedName("ns1", "new")
    measured = {
        "a pod comes": lambda: view.with_placed_pod(new, one),
        "a pod goes": lambda: view.without_pod(key),
        "a node changes": lambda: view.with_node(changed),
        "a reservation": lambda: view.reserving(new, request, node="n501", until=1.0),
    }
    for name, work in measured.items():
        figure(f"{name}, µs", cost(work, 200) * MICROSECONDS, most=200)


def test_what_planning_costs() -> None:
    pool = Pool()
    for number in range(CLUSTERS):
        pool = pool.with_member(
            Member(f"r{number}", {"cpu": 1_100 * quantity.UNIT, "memory": 2_200 * quantity.UNIT << 30})
        )
    slice_ = {"cpu": quantity.UNIT, "memory": quantity.UNIT << 30}
    cpu = time.process_time()
    for number in range(1_000):
        said = plan(SliceRequest(f"t{number % 50}/ns{number}", {"cpu": 10 * quantity.UNIT}, slice_), pool)
        assert said.missing is None
        pool = pool.with_holding(f"t{number % 50}/ns{number}", said.holding)
    print()
    figure("1,000 namespaces of 10 slices placed over 10 clusters, s", time.process_time() - cpu, most=5)


def test_how_many_pods_are_placed_in_a_second(views: list[ClusterView]) -> None:
    known = {view.cluster: view for view in views}
    holding = Holding(dict.fromkeys(known, 1_000), {"cpu": quantity.UNIT, "memory": quantity.UNIT << 30})
    assignments, request, count = Assignments(), ASKED["fits"], 2_000
    cpu = time.process_time()
    for number in range(count):
        fit = pod_choice.choose(request, holding, used=assignments.used("ns1"), views=known).best
        assert fit is not None
        key = NamespacedName("ns1", f"new{number}")
        assignments = assignments.with_assignment(key, Assignment(fit.cluster, request.amounts))
        known[fit.cluster] = known[fit.cluster].reserving(key, request, node=fit.node, until=60.0)
    print()
    figure("pods placed and reserved, each second of CPU", count / (time.process_time() - cpu), least=200)
