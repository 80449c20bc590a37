"""What is said and forecast about pods on virtual nodes."""

import dataclasses
import time

import pytest

from forecast_worlds import SHORT, a_virtual_node, a_virtual_pod, fates, owned, virtual_nodes, virtual_world
from hansa.kube.language import quantity
from hansa.scheduling import snapshot
from hansa.scheduling.forecasting.changes import AddNode, Drain, InvalidChange, Lose, Quota
from hansa.scheduling.forecasting.forecast import forecast
from scheduling_things import a_node, a_pod

PROVIDER = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}


def said(found):
    return {one.cluster: str(one) for one in found}


def test_a_virtual_node_that_a_pod_does_not_tolerate_is_part_of_what_would_make_it_fit():
    world = virtual_nodes([pod := a_pod(cpu="3")], small=[a_node("n1", cpu="2")], large=[a_node("n1", cpu="4")])
    answers = said(world.answers(pod))
    taint = "it tolerated the taint virtual-kubelet.io/provider=k8s:NoSchedule of node"
    assert answers["large"].endswith(f"; would fit if {taint} vn-large")
    assert answers["small"].endswith(f"; would fit if node n1 had 1 CPU more free and {taint} vn-small")


def test_a_cluster_that_cannot_be_read_is_unknown_and_not_full():
    pod = a_virtual_pod("new")
    world = virtual_nodes([pod], small=[], large=[a_node("n1", cpu="4")])
    world = world.with_lower(snapshot.unread("small", "no answer"))
    [large, small] = world.answers(pod)
    assert (large.fits, small.fits, str(small)) == (True, None, "unknown: no answer")


def test_a_bound_pod_is_asked_without_its_own_copy_and_without_its_virtual_node():
    pod = a_virtual_pod("web", on="small", tolerations=[])
    world = virtual_nodes([pod], small=[a_node("n1", cpu="1"), a_pod("web", on="n1")])
    assert said(world.answers(pod)) == {"small": "fits on node n1"}
    assert world.cluster_of(pod) == "small"


def test_ordinary_nodes_answer_too():
    pod = a_pod("new", cpu="2")
    world = virtual_nodes([pod, a_node("own", cpu="4")], small=[a_node("n1", cpu="1")])
    assert said(world.answers(pod))["ordinary nodes"] == "fits on node own"


def test_of_a_lost_cluster_pods_move_end_or_stay_as_their_tolerations_and_controllers_have_it():
    tolerant = {**SHORT, "tolerationSeconds": None}
    names = {
        "kept": a_virtual_pod("kept", on="small", tolerations=[PROVIDER, tolerant]),
        "moves": owned(a_virtual_pod("moves", on="small", tolerations=[PROVIDER, SHORT])),
        "bare": a_virtual_pod("bare", on="small", tolerations=[PROVIDER, SHORT]),
        "state": owned(a_virtual_pod("state", on="small", tolerations=[PROVIDER, SHORT]), "StatefulSet"),
        "other": owned(a_virtual_pod("other", on="large", tolerations=[PROVIDER, SHORT])),
    }
    copies = [a_pod(name, on="n1") for name in ("kept", "moves", "bare", "state")]
    large = [a_node("n1", cpu="2"), a_pod("other", on="n1")]
    world = virtual_world(list(names.values()), small=[a_node("n1", cpu="4"), *copies], large=large)
    found = forecast(world, [Lose("small")])
    assert fates(found) == {
        "kept": ("stays", ""),
        "moves": ("moves", "large"),
        "bare": ("ends", ""),
        "state": ("stays", ""),
    }
    assert found.unaffected == 1


def test_successors_that_fit_nowhere_are_pending_with_the_reasons():
    pods = [owned(a_virtual_pod(f"p{number}", on="small", tolerations=[PROVIDER, SHORT])) for number in range(3)]
    copies = [a_pod(one.name, on="n1") for one in pods]
    world = virtual_world(pods, small=[a_node("n1", cpu="4"), *copies], large=[a_node("n1", cpu="2")])
    found = forecast(world, [Lose("small")])
    assert sorted(fate for fate, _ in fates(found).values()) == ["moves", "moves", "pends"]
    [pending] = [one for one in found.outcomes if one.fate == "pends"]
    assert "large: Insufficient cpu (requested 1, most free 0 on node n1)" in pending.reason
    assert "small: it is lost" in pending.reason


def test_a_drained_nodes_pods_go_to_other_nodes_and_other_pods_there_take_room_first():
    pods = [owned(a_virtual_pod("web", on="small"))]
    foreign = owned(a_pod("foreign", on="n1", cpu="2", namespace="below"))
    small = [a_node("n1", cpu="4"), a_node("n2", cpu="2"), a_pod("web", on="n1"), foreign]
    found = forecast(virtual_world(pods, small=small, large=[a_node("n1", cpu="1")]), [Drain("small", "n1")])
    assert fates(found) == {"web": ("moves", "large")}


def test_a_new_node_starts_pending_pods():
    pods = [a_virtual_pod(f"p{number}", cpu="3") for number in range(2)]
    world = virtual_world(pods, small=[a_node("n1", cpu="2")])
    node = AddNode("small", {"cpu": 4 * quantity.UNIT, "pods": 10 * quantity.UNIT, "memory": quantity.UNIT << 33})
    found = forecast(world, [node])
    assert sorted(fates(found).values()) == [("pends", ""), ("starts", "small")]
    assert fates(forecast(world, [node, node])) == {"p0": ("starts", "small"), "p1": ("starts", "small")}
    assert world.clusters.lowers["small"].nodes.keys() == {"n1"}, "the world is not changed"


def test_a_pod_that_has_only_an_unreadable_cluster_left_is_not_forecast():
    world = virtual_world([a_virtual_pod("new", cpu="3")], small=[a_node("n1", cpu="2")], large=[])
    clusters = world.clusters.with_lower(snapshot.unread("large", "no answer"))
    found = forecast(dataclasses.replace(world, clusters=clusters), [Lose("small")])
    assert fates(found) == {"new": ("unknown", "")}
    assert found.unknown == {"large": "no answer"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Lose("r9"), "there is no cluster r9; known: small"),
        (Drain("small", "n9"), "cluster small has no node n9"),
        (Quota("shop", {}), "--quota is for namespaces in a pool"),
    ],
)
def test_what_does_not_exist_is_named(change, message):
    with pytest.raises(InvalidChange, match=message):
        forecast(virtual_world([a_virtual_node("small")], small=[a_node("n1")]), [change])


def test_pods_are_removed_without_a_copy_of_all_others():
    pods = [a_pod(f"web-{number}", on="n1") for number in range(8000)]
    made = snapshot.of("small", [], pods)
    began = time.process_time()
    for pod in pods:
        made = made.without_pod(pod.key)
    assert (len(made.pods), list(made.view.pods.items())) == (0, [])
    assert time.process_time() - began < 2, "seconds; it took ten before"
