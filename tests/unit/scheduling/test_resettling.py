"""Reservations follow what the scheduler of the cluster does instead of what was reserved."""

from hansa.kube.language import quantity
from hansa.scheduling import pod_request
from hansa.scheduling.resettling import resettled
from scheduling_things import a_node, a_pod, a_view

REQUEST = pod_request.of_pod(a_pod("any", cpu="3"))


def reserved(**nodes):
    view = a_view(a_node("n1"), a_node("n2"))
    for name, node in nodes.items():
        view = view.reserving(a_pod(name).key, REQUEST, node=node, until=10)
    return view


def free(view):
    return {node.name: node.free["cpu"] // quantity.UNIT for node in view.nodes()}


def test_a_reservation_makes_way_for_a_pod_that_came_to_its_node():
    view = reserved(a="n1", b="n2").with_pod(a_pod("a", on="n2", cpu="3"))
    assert free(view) == {"n1": 4, "n2": -2}, "n1 looks free, although b has to go there"
    moved = resettled(view, "n2")
    assert free(moved) == {"n1": 1, "n2": 1}
    assert moved.reservations.get(a_pod("b").key).until == 10


def test_a_reservation_leaves_a_node_that_is_gone():
    assert free(resettled(reserved(a="n1").without_node("n1"), "n1")) == {"n2": 1}


def test_what_fits_nowhere_else_stays_and_counts():
    view = reserved(a="n1", b="n2").with_pod(a_pod("c", on="n2", cpu="3"))
    assert free(resettled(view, "n2")) == {"n1": 1, "n2": -2}


def test_a_node_with_room_is_left_alone():
    view = reserved(a="n1")
    assert resettled(view, "n1") is view


def test_reservations_of_a_closed_cluster_move_too():
    view = reserved(a="n1", b="n2").with_pod(a_pod("a", on="n2", cpu="3")).with_cluster({}, closed="unreachable")
    moved = resettled(view, "n2")
    assert (free(moved), moved.closed) == ({"n1": 1, "n2": 1}, "unreachable")
