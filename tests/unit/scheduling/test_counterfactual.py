"""What would make a pod fit is said in a sentence, and is true."""

import pytest

from hansa.kube.objects import Object
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.counterfactual import remedy
from hansa.scheduling.verdict import Fit
from scheduling_things import HOST, ZONE, a_node, a_pod, a_view, apart, term

GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
CORDONED = Object.of(a_node("n1").to_dict() | {"spec": {"unschedulable": True}})


def said(pod, *nodes):
    view = a_view(*nodes)
    request = pod_request.of_pod(pod)
    found = remedy(request, view)
    if found is not None:
        assert isinstance(evaluation.evaluate(found.request, view), Fit)
    return str(found)


@pytest.mark.parametrize(
    ("pod", "nodes", "sentence"),
    [
        (a_pod(cpu="5"), [a_node("n1", cpu="4"), a_node("n2", cpu="2")], "would fit if node n1 had 1 CPU more free"),
        (
            a_pod(),
            [a_node("n1", taints=[GPU])],
            "would fit if it tolerated the taint gpu=a100:NoSchedule of node n1",
        ),
        (
            a_pod(cpu="5", nodeSelector={ZONE: "b"}),
            [a_node("n1", cpu="4", labels={ZONE: "a"}), a_node("n2", cpu="9", labels={ZONE: "a"})],
            "would fit if it had no nodeSelector and no required node affinity",
        ),
        (
            a_pod(cpu="5", nodeSelector={ZONE: "b"}),
            [a_node("n1", taints=[GPU], labels={ZONE: "b"})],
            "would fit if it tolerated the taint gpu=a100:NoSchedule of node n1 and node n1 had 1 CPU more free",
        ),
        (a_pod(), [CORDONED], "node.kubernetes.io/unschedulable:NoSchedule of node n1"),
        (a_pod(), [a_node("n1")], "None"),
        (a_pod(), [a_node("n1", ready=False)], "None"),
        (a_pod(), [], "None"),
    ],
)
def test_the_smallest_change_is_named(pod, nodes, sentence):
    assert sentence in said(pod, *nodes)


def test_pods_that_keep_it_off():
    other = a_pod("other", on="n1", labels={"app": "web"})
    pod = a_pod(affinity=apart(term(HOST, app="web")))
    assert said(pod, a_node("n1"), other) == (
        "would fit if it had no pod affinity, anti-affinity and topology spread constraints"
    )


def test_an_overcommitted_node_lacks_more_than_the_request():
    full = a_pod("full", on="n1", cpu="6")
    assert said(a_pod(cpu="1"), a_node("n1", cpu="4"), full) == "would fit if node n1 had 3 CPU more free"


def test_host_ports_that_are_taken():
    ports = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    assert said(a_pod(**ports), a_node("n1"), a_pod("other", on="n1", **ports)) == "would fit if it had no host ports"
