"""The capacity of a lower cluster for one upper cluster."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.language import quantity, tolerations
from hansa.kube.objects import NamespacedName
from hansa.model import capacity, requests
from lower_things import container, node, pod

TAINT = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
OURS = {"mine": "yes"}


def is_ours(one):
    return one.labels.get("mine") == "yes"


def made(*things, **options):
    cluster = capacity.Capacity(is_ours, **options)
    for thing in things:
        put(cluster, thing)
    return cluster


def put(cluster, thing):
    if thing.kind == "Node":
        return cluster.node(thing.name, thing)
    return cluster.pod(thing.key, thing)


def cpu(cluster):
    totals = cluster.totals()
    return capacity.resource_list(totals.capacity)["cpu"], capacity.resource_list(totals.allocatable)["cpu"]


def test_the_nodes_are_added_up_with_extended_resources_and_others_are_subtracted():
    cluster = made(
        node("n1", cpu="7910m", memory="16Gi", pods="110", gpu="4"),
        node("n2", cpu="8", memory="15Gi", pods="110"),
        pod("p1", on="n1", containers=[container(cpu="500m", memory="1Gi", gpu="1")]),
    )
    totals = cluster.totals()
    assert capacity.resource_list(totals.capacity) == {
        "cpu": "15910m",
        "memory": "31Gi",
        "pods": "220",
        "example.com/gpu": "4",
    }
    assert capacity.resource_list(totals.allocatable) == {
        "cpu": "15410m",
        "memory": "30Gi",
        "pods": "219",
        "example.com/gpu": "3",
    }


@pytest.mark.parametrize(
    "closed",
    [
        node("n2", ready="False"),
        node("n2", ready="Unknown"),
        node("n2", cordoned=True),
        node("n2", taints=[TAINT]),
        node("n2", taints=[{"key": "dedicated", "effect": "NoExecute"}]),
    ],
)
def test_a_node_that_takes_no_pods_does_not_count_nor_do_the_pods_on_it(closed):
    cluster = made(node("n1", cpu="8"), pod("p", on="n2"))
    assert put(cluster, node("n2", cpu="8"))
    assert cpu(cluster) == ("16", "15")
    assert put(cluster, closed)
    assert cpu(cluster) == ("8", "8")


def test_a_taint_that_only_prefers_or_that_is_tolerated_does_not_close_a_node():
    preferring = node(taints=[TAINT | {"effect": "PreferNoSchedule"}], cpu="8")
    assert cpu(made(preferring)) == ("8", "8")
    tolerated = [tolerations.Toleration(key="dedicated", operator="Exists")]
    assert cpu(made(node(taints=[TAINT], cpu="8"), tolerated=tolerated)) == ("8", "8")


def test_our_own_pods_are_not_subtracted_since_the_upper_scheduler_does_it():
    cluster = made(node(cpu="8"), pod("ours", labels=OURS), pod("theirs"))
    assert cpu(cluster) == ("8", "7")


def test_what_our_pods_use_on_a_node_that_takes_no_more_is_not_taken_from_the_others():
    cluster = made(node("n1", cpu="8"), node("n2", cpu="8", cordoned=True), pod(on="n2", labels=OURS))
    # The upper scheduler subtracts the pod from 9 and finds the 8 that are free on n1.
    assert cpu(cluster) == ("9", "9")


def test_a_pod_counts_from_the_moment_that_it_is_bound_until_it_has_finished():
    cluster = made(node(cpu="8"))
    assert not put(cluster, pod(on="", phase="Pending"))
    assert put(cluster, pod(phase="Pending"))
    assert cpu(cluster)[1] == "7"
    assert not put(cluster, pod(phase="Running"))
    assert put(cluster, pod(phase="Succeeded"))
    assert cpu(cluster)[1] == "8"


def test_a_node_with_more_on_it_than_it_offers_takes_nothing_from_the_others():
    cluster = made(node("n1", cpu="1"), node("n2", cpu="8"), pod(on="n1", containers=[container(cpu="4")]))
    assert cpu(cluster) == ("9", "8")


def test_an_exhausted_resource_is_listed_as_zero_and_one_that_no_node_offers_is_not_listed():
    cluster = made(node(cpu="8", gpu="1"), pod(containers=[container(gpu="1")]))
    assert capacity.resource_list(cluster.totals().allocatable)["example.com/gpu"] == "0"
    put(cluster, node(cpu="8"))
    assert "example.com/gpu" not in cluster.totals().allocatable


def test_an_empty_cluster_lists_zero_cpu_memory_and_pods():
    assert capacity.resource_list(made().totals().allocatable) == {"cpu": "0", "memory": "0", "pods": "0"}


def test_a_change_that_does_not_affect_the_totals_is_reported_as_none():
    cluster = made(node(cpu="8"), pod("ours", labels=OURS))
    assert not put(cluster, node(cpu="8000m"))
    assert not put(cluster, pod("ours", labels=OURS, containers=[container(cpu="2")]))
    assert not cluster.pod(NamespacedName("default", "ours"), None)
    assert not cluster.node("other", None)


NAMES = ["n1", "n2", "n3"]
amounts = st.sampled_from(["0", "1", "100m", "333m", "2.5", "8"])
nodes = st.builds(
    lambda name, cpu, gpu, **rest: node(name, cpu=cpu, gpu=gpu, pods="3", **rest),
    st.sampled_from(NAMES),
    cpu=amounts,
    gpu=amounts,
    ready=st.sampled_from(["True", "False"]),
    cordoned=st.booleans(),
    taints=st.sampled_from([[], [TAINT]]),
)
pods = st.builds(
    lambda name, on, phase, labels, cpu, gpu: pod(
        name, on=on, phase=phase, labels=labels, containers=[container(cpu=cpu, gpu=gpu)]
    ),
    st.sampled_from([f"p{number}" for number in range(6)]),
    on=st.sampled_from([*NAMES, ""]),
    phase=st.sampled_from(["Pending", "Running", "Failed"]),
    labels=st.sampled_from([{}, OURS]),
    cpu=amounts,
    gpu=amounts,
)
steps = st.lists(st.tuples(st.one_of(nodes, pods), st.booleans()), max_size=25)


def plainly(there):
    """The definition, summed up over everything: slow, and nothing is remembered."""
    total, free = {}, {}
    for name in NAMES:
        one = there.get(("Node", name))
        is_schedulable = (
            one is not None
            and one.status["conditions"][0]["status"] == "True"
            and not one.spec.get("unschedulable")
            and not one.spec.get("taints")
        )
        on_it = [p for p in there.values() if p.kind == "Pod" and p.spec.get("nodeName") == name]
        running = [p for p in on_it if p.status["phase"] != "Failed"]
        offered = plain_sum(
            [one.status["allocatable"]] if is_schedulable else [asked(p) for p in running if is_ours(p)]
        )
        used = plain_sum([asked(p) for p in running if not is_ours(p)] if is_schedulable else [])
        for resource, amount in offered.items():
            total[resource] = total.get(resource, 0) + amount
            free[resource] = free.get(resource, 0) + max(0, amount - used.get(resource, 0))
    return {k: v for k, v in total.items() if v}, {k: v for k, v in free.items() if v}


def asked(one):
    return one.spec["containers"][0]["resources"]["requests"] | {"pods": "1"}


def plain_sum(lists):
    total = {}
    for one in lists:
        for resource, text in one.items():
            total[resource] = total.get(resource, 0) + quantity.parse(text).nano
    return total


@given(steps)
def test_the_totals_always_equal_a_sum_over_all_objects_and_every_change_is_reported(steps):
    cluster, there = capacity.Capacity(is_ours), {}
    for thing, is_there in steps:
        before = cluster.totals()
        identity = (thing.kind, thing.name)
        if is_there:
            there[identity] = thing
        else:
            there.pop(identity, None)
        new = thing if is_there else None
        is_felt = cluster.node(thing.name, new) if thing.kind == "Node" else cluster.pod(thing.key, new)
        totals = cluster.totals()
        total, free = plainly(there)
        assert {k: v for k, v in totals.capacity.items() if v} == total
        assert {k: v for k, v in totals.allocatable.items() if v} == free
        assert is_felt or totals == before


def test_it_is_cheap_with_a_thousand_nodes_and_ten_thousand_pods():
    things = [node(f"n{number}", cpu="32", memory="256Gi", pods="110") for number in range(1000)]
    things += [pod(f"p{number}", on=f"n{number % 1000}") for number in range(10_000)]
    cluster = capacity.Capacity(is_ours)
    began = time.process_time()
    for thing in things:
        put(cluster, thing)
    assert cpu(cluster) == ("32k", "22k")
    once = (time.process_time() - began) / len(things)
    began = time.process_time()
    for number in range(1000):
        cluster.pod(things[1000 + number].key, None)
        cluster.totals()
    assert once < 200e-6
    assert (time.process_time() - began) / 1000 < 200e-6


def test_amounts_that_come_to_nothing_leave_no_trace():
    total = {"cpu": 1}
    requests.add(total, {"cpu": 1}, -1)
    assert total == {}
