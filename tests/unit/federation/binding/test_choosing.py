"""The choice of a target: by virtual nodes, free resources of real nodes, and former refusals."""

import pytest

from hansa.federation.binding import choosing, proxy
from hansa.federation.binding.nodes import VirtualNodes
from hansa.federation.binding.reserved_views import ReservedViews
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from proxies import a_proxy, a_target, a_virtual_node
from scheduling_things import a_node

REGION = "topology.kubernetes.io/region"


class World:
    """Targets c1 (us) and c2 (eu), with a virtual node each."""

    def __init__(self, *targets):
        self.targets, self.nodes = ReservedViews(), VirtualNodes()
        for target in targets or (c1(), c2()):
            self.targets.update(target, 0.0)
            self.nodes.update(target.node, a_virtual_node(target.node))

    def choose(self, pod, pods=(), **avoided):
        request = proxy.request_of(pod)
        return choosing.choose(request, self.targets, self.nodes.view(request, pods), avoided=avoided)

    def place(self, pod):
        verdict = self.choose(pod)
        if verdict.best:
            self.targets.hold(pod.key, verdict.best.cluster, proxy.request_of(pod).delegate)
        return verdict.best.cluster if verdict.best else str(verdict)


def c1(**changes):
    return a_target("c1", a_node("c1-0", labels={REGION: "us"}), **changes)


def c2(**changes):
    return a_target("c2", a_node("c2-0", labels={REGION: "eu"}), **changes)


def test_pods_spread_over_the_targets_until_these_are_full():
    world = World()
    places = [world.place(a_proxy(f"p{number}")) for number in range(9)]
    assert sorted(places[:8]) == ["c1"] * 4 + ["c2"] * 4
    assert (
        places[8] == "c1: Insufficient cpu (requested 1, most free 0). c2: Insufficient cpu (requested 1, most free 0)"
    )


def test_the_original_pods_constraints_are_met_by_real_nodes():
    assert World().place(a_proxy(nodeSelector={REGION: "eu"})) == "c2"
    verdict = World().choose(a_proxy(nodeSelector={REGION: "asia"}))
    assert str(verdict).count("1 node(s) didn't match Pod's node affinity/selector") == 2


def test_the_names_of_shapes_are_not_in_messages():
    assert "c1-0" not in str(World().choose(a_proxy(cpu="9")))
    assert "most free 4" in str(World().choose(a_proxy(cpu="9")))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (c1(problem="unreachable: timed out"), "c1: unreachable: timed out"),
        (c1(namespace="elsewhere"), "no clusters"),
    ],
)
def test_a_target_that_takes_no_pods_of_the_namespace_is_not_used(target, reason):
    assert World(target).place(a_proxy()) == reason
    assert World(target, c2()).place(a_proxy()) == "c2"


def test_a_cordoned_or_missing_virtual_node_gets_no_pods():
    world = World()
    world.nodes.update("c1", a_virtual_node("c1", cordoned=True))
    world.nodes.update("c2", None)
    assert world.place(a_proxy()) == "c1: 1 node(s) were unschedulable. c2: its virtual node does not exist yet"


def test_the_proxys_own_constraints_are_met_by_virtual_nodes():
    world = World()
    world.nodes.update("c2", a_virtual_node("c2", labels={"cheap": "true"}))
    assert world.place(a_proxy(proxy={"nodeSelector": {"cheap": "true"}})) == "c2"


def test_proxies_spread_over_virtual_nodes_by_their_own_constraint():
    world = World()
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    settings = {"labels": {"app": "web"}, "proxy": {"topologySpreadConstraints": [spread]}}
    first = a_proxy("first", annotations={keys.CANDIDATE: "c1"}, **settings)
    verdict = world.choose(a_proxy("second", **settings), [first])
    assert [fit.cluster for fit in verdict.fits] == ["c2"]


def test_constraints_of_the_pod_itself_apply_to_virtual_nodes_when_it_says_so():
    pod = a_proxy(nodeSelector={REGION: "asia"}, annotations={keys.USE_CONSTRAINTS: ""})
    assert World().choose(pod).best


def test_an_avoided_target_is_refused_with_its_reason_and_a_full_one_with_what_is_full():
    verdict = World().choose(a_proxy(), c1="its volume is elsewhere")
    assert verdict.best.cluster == "c2"
    assert str(verdict.refusals[0]) == "c1: its volume is elsewhere"
    assert "Insufficient cpu" in str(World().choose(a_proxy(cpu="9"), c1="0/1 nodes are available"))


def test_a_pod_without_reservation_needs_no_free_resources_but_prefers_them():
    pod = a_proxy(cpu="9", annotations={keys.NO_RESERVATION: ""})
    assert World().place(pod) == "c1"
    assert World(c1(), a_target("c2", a_node("c2-0", cpu="10"))).place(pod) == "c2"


def test_a_new_summary_gets_the_reservations_again_and_counts_settled_ones_no_more():
    world = World(c1())
    pods = [a_proxy(f"p{number}") for number in range(4)]
    assert [world.place(pod) for pod in pods] == ["c1"] * 4
    world.targets.update(c1(version="2"), 0.0)
    assert world.choose(a_proxy()).best is None
    world.targets.settle(pods[0].key, until=3.0)
    assert (world.targets.expire(2.9), world.targets.expire(3.0)) == (False, True)
    assert world.choose(a_proxy()).best


def test_a_summary_that_counts_a_pod_already_does_not_get_its_reservation_twice():
    world = World(c1())
    world.place(a_proxy("p0"))
    world.targets.update(a_target("c1", a_node("c1-0", cpu="0"), version="2"), 0.0)
    world.targets.release(NamespacedName("shop", "p0"))
    assert world.choose(a_proxy()).best is None
    world.targets.update(a_target("c1", a_node("c1-0", cpu="1"), version="3"), 0.0)
    assert world.choose(a_proxy()).best


def test_a_target_is_unusable_since_its_first_problem():
    targets = ReservedViews()
    targets.update(c1(problem="unreachable"), 5.0)
    targets.update(c1(problem="unreachable: timed out"), 7.0)
    assert targets.unusable_seconds("c1", 9.0) == 4.0
    targets.update(c1(), 9.0)
    assert targets.unusable_seconds("c1", 9.0) == 0.0
    targets.remove("c1")
    assert targets.unusable_seconds("c1", 9.0) == float("inf")
