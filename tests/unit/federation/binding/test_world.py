"""What is said and forecast about proxy pods: the same as the binder decides."""

import random

import pytest

from forecast_worlds import SHORT, fates, owned
from hansa.federation.binding import choosing, proxy, world
from hansa.federation.binding.federation_world import FederationWorld
from hansa.federation.binding.nodes import VirtualNodes
from hansa.federation.binding.reserved_views import ReservedViews
from hansa.federation.binding.world import Federation, TargetState
from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.scheduling import snapshot
from hansa.scheduling.forecasting.changes import AddNode, Drain, InvalidChange, Lose, Quota
from hansa.scheduling.forecasting.forecast import forecast
from proxies import a_proxy, a_target, a_virtual_node
from scheduling_things import a_node

REGION = "topology.kubernetes.io/region"


def a_federation(pods=(), unknown=(), **targets):
    """Targets with these nodes; pods that are bound have delegates there, on the node in their label `at`."""
    views = {name: a_target(name, *nodes) for name, nodes in targets.items()}
    source = snapshot.of("source", [a_virtual_node(name) for name in targets], pods)
    states = {name: a_state(view, pods, unknown=name in unknown) for name, view in views.items()}
    return Federation(source, states)


def a_state(view, pods, *, unknown):
    if unknown:
        return TargetState(view.link, unknown="no answer")
    own = [pod for pod in pods if pod.spec.get("nodeName") == view.link.node]
    delegates = {pod.uid: a_delegate(pod) for pod in own}
    proxies = {pod.uid: pod.key for pod in own}
    return TargetState(view.link, world.with_delegates(view.scheduling, delegates.values(), proxies), delegates)


def a_delegate(pod):
    described = pod.to_dict()
    described["metadata"] = {"name": f"{pod.name}-x", "namespace": "ns", "labels": {keys.PARENT_UID: pod.uid}}
    described["spec"] = {**described["spec"], "nodeName": pod.labels["at"]}
    return Object.of(described)


def a_bound(name, *, on, at, owner="ReplicaSet", **more):
    """A proxy pod that runs in a target."""
    pod = a_proxy(name, **more)
    described = pod.to_dict()
    described["spec"]["nodeName"] = on
    described["spec"]["tolerations"] = [*described["spec"].get("tolerations", ()), SHORT]
    described["metadata"] |= {"labels": {"at": at}, "annotations": {**pod.annotations, keys.CANDIDATE: on}}
    found = Object.of(described)
    return owned(found, owner) if owner else found


def said(found):
    return {one.node: str(one) for one in found}


def test_each_target_answers_with_its_nodes_and_what_would_help():
    pod = a_proxy(nodeSelector={REGION: "eu"}, cpu="5")
    found = a_federation([pod], c1=[a_node("n1", labels={REGION: "us"})], c2=[a_node("n2", labels={REGION: "eu"})])
    answers = said(found.answers(pod))
    assert answers["c2"] == (
        "Insufficient cpu (requested 5, most free 4 on node n2); would fit if node n2 had 1 CPU more free"
    )
    assert "would fit if it had no nodeSelector" in answers["c1"]


def test_a_target_that_cannot_be_read_is_unknown():
    found = a_federation(unknown=("c1",), c1=[])
    assert said(found.answers(a_proxy())) == {"c1": "unknown: no answer"}


def test_a_delegates_room_counts_as_its_own():
    pod = a_bound("web", on="c1", at="n1", cpu="3")
    found = a_federation([pod], c1=[a_node("n1", cpu="1")])  # what its summary says beside it
    assert said(found.answers(pod)) == {"c1": "fits on node n1"}
    assert found.cluster_of(pod) == found.targets["c1"].name


@pytest.mark.parametrize("seed", range(50))
def test_the_answers_are_those_of_the_binder(seed):
    rng = random.Random(seed)
    targets = {
        name: [
            a_node(f"n{number}", cpu=str(rng.randint(1, 4)), labels={REGION: rng.choice(("eu", "us"))})
            for number in range(rng.randint(0, 3))
        ]
        for name in ("c1", "c2", "c3")
    }
    selector = rng.choice(({}, {"nodeSelector": {REGION: "eu"}}))
    pod = a_proxy(cpu=str(rng.randint(1, 4)), **selector)
    found = a_federation([pod], **targets)
    views, nodes = ReservedViews(), VirtualNodes()
    for name, things in targets.items():
        views.update(a_target(name, *things), 0.0)
        nodes.update(name, a_virtual_node(name))
    request = proxy.request_of(pod)
    verdict = choosing.choose(request, views, nodes.view(request, ()))
    assert {one.node for one in found.answers(pod) if one.fits} == {fit.cluster for fit in verdict.fits}


def test_a_lost_target_moves_what_a_controller_creates_again():
    pods = [a_bound("moves", on="c1", at="n1"), a_bound("bare", on="c1", at="n1", owner="")]
    found = forecast(FederationWorld(a_federation(pods, c1=[a_node("n1")], c2=[a_node("n2")])), [Lose("c1")])
    assert fates(found) == {"moves": ("moves", "c2"), "bare": ("ends", "")}


def test_a_drained_node_and_a_new_one():
    pods = [a_bound("web", on="c1", at="n1", cpu="2"), a_proxy("large", cpu="6")]
    base = FederationWorld(a_federation(pods, c1=[a_node("n1", cpu="1"), a_node("n2", cpu="1")], c2=[a_node("n3")]))
    assert fates(forecast(base, [Drain("c1", "n1")])) == {"large": ("pends", ""), "web": ("moves", "c2")}
    amounts = dict.fromkeys(("cpu", "pods"), 9 * quantity.UNIT)
    assert fates(forecast(base, [AddNode("c1", amounts)])) == {"large": ("starts", "c1")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Lose("c9"), "there is no target c9; known: c1"),
        (Drain("c1", "n9"), "has no node n9 in its ClusterSummary"),
        (Quota("shop", {}), "--quota is for namespaces in a pool"),
    ],
)
def test_what_does_not_exist_is_named(change, message):
    with pytest.raises(InvalidChange, match=message):
        forecast(FederationWorld(a_federation(c1=[a_node("n1")])), [change])
