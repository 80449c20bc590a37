"""Labels that tell nodes apart leave the shapes, and are still matched."""

import time

from hansa.scheduling import cluster_view
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, answer, apart, term

SERIAL = "example.com/serial"
MANY = cluster_view.MOST_GROUPS + 2


def nodes(*, zones: int = 3):
    return [a_node(f"n{number}", labels={SERIAL: f"s{number}", ZONE: f"z{number % zones}"}) for number in range(MANY)]


def test_a_label_with_a_value_per_node_does_not_group_nodes():
    view = a_view(*nodes())
    assert view.own_labels == {SERIAL, *a_view().own_labels}
    assert sorted(shape.labels[ZONE] for shape in view.groups) == ["z0", "z1", "z2"]
    assert view.node("n7").labels() == {HOST: "n7", SERIAL: "s7", ZONE: "z1"}


def test_a_pod_may_still_name_it():
    view = a_view(*nodes())
    assert answer(a_pod(nodeSelector={SERIAL: "s7"}), view) == "r1/n7"
    assert answer(a_pod(nodeSelector={SERIAL: "s7", ZONE: "z2"}), view) == (
        f"r1: {MANY} node(s) didn't match Pod's node affinity/selector"
    )


def test_pods_are_kept_apart_by_it():
    view = a_view(*nodes()).with_pod(a_pod("p", on="n7", labels={"app": "web"}))
    beside = a_pod(nodeSelector={SERIAL: "s7"}, affinity=apart(term(SERIAL, app="web")), labels={"app": "web"})
    assert "didn't match pod anti-affinity rules" in answer(beside, view)


def test_labels_that_few_nodes_have_group_nodes():
    few = [a_node(f"n{number}", labels={f"example.com/{number % 8}": ""}) for number in range(MANY)]
    assert len(a_view(*few).groups) == 8


def test_combinations_of_labels_are_bounded():
    bits = [
        a_node(f"n{number}", labels={f"example.com/{bit}": "" for bit in range(9) if number >> bit & 1})
        for number in range(512)
    ]
    view = a_view(*bits)
    assert len(view.groups) <= cluster_view.MOST_GROUPS
    assert {node.name: node.labels() for node in view.nodes()} == {one.name: dict(one.labels) for one in bits}


def test_nodes_with_hundreds_of_labels_that_no_other_node_has_stop_no_loop():
    began, view = time.process_time(), a_view()
    for number in range(200):
        view = view.with_node(a_node(f"n{number}", labels={f"example.com/{number}-{one}": "" for one in range(200)}))
    assert time.process_time() - began < 8, "seconds; it took a minute before"
    assert len(view.groups) < 200


def test_taints_stay_in_the_shape_however_many_there_are():
    tainted = [a_node(f"n{number}", taints=[{"key": f"t{number}", "effect": "NoSchedule"}]) for number in range(MANY)]
    view = a_view(*tainted)
    assert len(view.groups) == MANY
    assert answer(a_pod(tolerations=[{"key": "t5", "operator": "Exists"}]), view) == "r1/n5"
