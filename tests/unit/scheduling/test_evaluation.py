"""Verdicts: the node that a pod fits on, and the reasons why others do not fit."""

import dataclasses

import pytest

from hansa.kube.language import quantity
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.plugins import NodeCheck, Profile
from hansa.scheduling.verdict import Filtered, Insufficient, Refusal
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, answer


def test_a_refusal_names_what_is_missing_the_largest_there_is_and_what_is_against_the_other_nodes():
    busy = a_pod("p", on="n7", cpu="1900m")
    gpu = [a_node(f"g{number}", taints=[{"key": "gpu"}]) for number in range(4)]
    view = a_view(a_node("n1", cpu="2"), a_node("n7"), busy, *gpu, cluster="r2")
    result = evaluation.verdict(pod_request.of_pod(a_pod(cpu="3")), [view])
    assert (
        str(result)
        == "r2: Insufficient cpu (requested 3, most free 2.1 on node n7); 4 node(s) had untolerated taint {gpu: }"
    )
    shortage = Insufficient("cpu", 3 * quantity.UNIT, 2100 * quantity.MILLI, "n7")
    assert result.refusals == (Refusal("r2", (shortage, Filtered(4, "node(s) had untolerated taint {gpu: }"))),)
    assert result.best is None


def test_the_node_with_most_free_capacity_in_the_cluster_with_most_is_best():
    views = [
        a_view(a_node("n1", cpu="2"), a_node("n2", cpu="3"), cluster="r1"),
        a_view(a_node("n1", cpu="8"), cluster="r2"),
        a_view(a_node("n1", cpu="8"), cluster="r3"),
    ]
    result = evaluation.verdict(pod_request.of_pod(a_pod()), views)
    assert [(fit.cluster, fit.node) for fit in result.fits] == [("r2", "n1"), ("r3", "n1"), ("r1", "n2")]
    assert result.refusals == ()
    packed = evaluation.verdict(pod_request.of_pod(a_pod()), views, profile=evaluation.PACKING)
    assert (packed.best.cluster, packed.best.node) == ("r1", "n2")


def test_exactly_what_is_free_fits_and_a_thousandth_more_does_not():
    view = a_view(a_node("n1"), a_pod("p", on="n1", cpu="2500m"))
    assert answer(a_pod(cpu="1500m"), view) == "r1/n1"
    assert answer(a_pod(cpu="1501m"), view) == "r1: Insufficient cpu (requested 1.501, most free 1.5 on node n1)"


def test_a_node_without_a_pod_slot_is_full():
    full = a_view(a_node("n1", pods="1"), a_pod("p", on="n1", cpu="0"))
    assert answer(a_pod(cpu="0"), full) == "r1: Too many pods"


def test_resources_that_are_free_only_on_different_nodes_fit_on_no_single_node():
    view = a_view(a_node("n1", memory="1Gi"), a_node("n2", cpu="1"))
    both = a_pod(requests={"cpu": "2", "memory": "2Gi"})
    assert answer(both, view) == "r1: no single node has cpu 2, memory 2Gi, pods 1 free"


def test_a_resource_that_no_node_offers_is_reported_as_insufficient():
    wanting = a_pod(requests={"example.com/gpu": "1"})
    assert answer(wanting, a_view(a_node("n1"))) == "r1: Insufficient example.com/gpu (requested 1, most free 0)"
    assert answer(wanting, a_view(a_node("n1"), a_node("n2", **{"example.com/gpu": "1"}))) == "r1/n2"


def test_clusters_without_nodes_and_closed_clusters_have_a_reason():
    closed = dataclasses.replace(a_view(a_node("n1"), cluster="r2"), closed="leaving the pool")
    assert answer(a_pod(), a_view(), closed) == "r1: no nodes. r2: leaving the pool"
    assert answer(a_pod()) == "no clusters"


def test_nodes_that_are_not_ready_or_cordoned_take_nothing():
    view = a_view(a_node("n1", ready=False), a_node("n2", cordoned=True))
    assert answer(a_pod(), view) == "r1: 1 node(s) were not ready; 1 node(s) were unschedulable"
    tolerant = a_pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert answer(tolerant, view) == "r1/n2"


def test_a_taint_that_is_tolerated_is_no_reason():
    view = a_view(a_node("n1", taints=[{"key": "team", "value": "a"}]))
    assert answer(a_pod(), view) == "r1: 1 node(s) had untolerated taint {team: a}"
    assert answer(a_pod(tolerations=[{"key": "team", "value": "a"}]), view) == "r1/n1"


def test_node_selectors_work_on_labels_of_shapes_and_on_names_of_nodes():
    nodes = [a_node(f"n{number}", labels={ZONE: f"z{number % 2}"}) for number in range(4)]
    view = a_view(*nodes)
    assert answer(a_pod(nodeSelector={ZONE: "z1"}), view) == "r1/n1"
    assert answer(a_pod(nodeSelector={HOST: "n3"}), view) == "r1/n3"
    refused = answer(a_pod(nodeSelector={HOST: "n3", ZONE: "z0"}), view)
    assert refused == "r1: 4 node(s) didn't match Pod's node affinity/selector"
    by_name = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    assert answer(a_pod(affinity=required_nodes(by_name)), view) == "r1/n2"
    not_first = [{"matchExpressions": [{"key": HOST, "operator": "NotIn", "values": ["n0", "n1"]}]}]
    assert answer(a_pod(affinity=required_nodes(not_first)), view) == "r1/n2"


def test_requests_below_zero_give_a_node_no_more_than_it_has():
    """An API server refuses them, but a cluster may show anything."""
    view = a_view(a_node("n1", cpu="0"), a_pod("p", on="n1", cpu="-5"))
    assert answer(a_pod(cpu="1"), view) == "r1: Insufficient cpu (requested 1, most free 0 on node n1)"


def listening(name, on="", **port):
    ports = [{"containerPort": 80, "hostPort": 8080, **port}]
    return a_pod(name, on=on, cpu="1", containers=[{"name": "c", "ports": ports}])


@pytest.mark.parametrize(
    ("taken", "wanted", "is_free"),
    [
        ({}, {}, False),
        ({}, {"hostPort": 8081}, True),
        ({}, {"protocol": "UDP"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, True),
        ({"hostIP": "10.0.0.1"}, {}, False),
        ({}, {"hostIP": "10.0.0.1"}, False),
    ],
)
def test_a_port_of_a_node_is_taken_once(taken, wanted, is_free):
    view = a_view(a_node("n1"), listening("first", on="n1", **taken))
    refusal = "r1: 1 node(s) didn't have free ports for the requested pod ports"
    assert answer(listening("second", **wanted), view) == ("r1/n1" if is_free else refusal)


def test_a_port_is_free_again_when_its_pod_is_gone_or_was_only_reserved():
    first, second = listening("first"), listening("second")
    view = a_view(a_node("n1")).reserving(first.key, pod_request.of_pod(first), node="n1", until=9.0)
    assert "free ports" in answer(second, view)
    assert answer(second, view.at(10.0)) == "r1/n1"
    assert answer(second, a_view(a_node("n1"), listening("first", on="n1")).without_pod(first.key)) == "r1/n1"


def required_nodes(terms):
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def test_preferences_decide_between_nodes_that_fit():
    likes = {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    liking = a_pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [likes]}})
    plain, fast = a_view(a_node("n1"), cluster="r1"), a_view(a_node("n1", labels={"disk": "ssd"}), cluster="r2")
    assert answer(liking, plain, fast) == "r2/n1"
    soft = a_view(a_node("n1", taints=[{"key": "old", "effect": "PreferNoSchedule"}]), cluster="r0")
    assert answer(a_pod(), plain, soft) == "r1/n1"


def test_the_verdict_does_not_depend_on_the_order_in_which_things_came():
    things = [
        *(a_node(f"n{number}", labels={ZONE: f"z{number % 3}"}) for number in range(9)),
        *(a_pod(f"p{number}", on=f"n{number}") for number in range(5)),
    ]
    request = pod_request.of_pod(a_pod())
    assert evaluation.evaluate(request, a_view(*things)) == evaluation.evaluate(request, a_view(*reversed(things)))


def test_a_filter_of_ones_own_joins_the_others():
    def only_odd(_ask, _view):
        return NodeCheck(node=lambda node: "" if int(node.name[1:]) % 2 else "node(s) were even")

    profile = Profile((*evaluation.SPREADING.filters, only_odd), evaluation.SPREADING.scores)
    view = a_view(*(a_node(f"n{number}") for number in range(3)))
    assert evaluation.evaluate(pod_request.of_pod(a_pod()), view, profile=profile).node == "n1"
    even = a_view(a_node("n0"), a_node("n2"))
    assert str(evaluation.evaluate(pod_request.of_pod(a_pod()), even, profile=profile)) == "r1: 2 node(s) were even"
