"""Pods that tolerate every taint stay off virtual nodes, and nothing else about them changes."""

import pytest

from hansa.admission import configuration, mutation, unelected_pods
from hansa.admission.mutation import Operation, Request
from hansa.kube import resources
from hansa.model import keys
from hansa.modes import admiralty_admission
from hansa.modes.admiralty_settings import AdmiraltySettings

MUTATIONS = admiralty_admission.mutations(AdmiraltySettings())
EVERYTHING = [{"operator": "Exists"}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_pod(metadata=None, **spec):
    return {"metadata": {"name": "operator", **(metadata or {})}, "spec": {"tolerations": EVERYTHING, **spec}}


def mutated(pod):
    return mutation.mutated(Request(resources.PODS, Operation.CREATE, "kube-system", pod), MUTATIONS, {})


def terms(pod):
    return mutated(pod)["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_a_pod_that_tolerates_every_taint_requires_a_node_that_is_not_virtual():
    assert terms(a_pod()) == [{"matchExpressions": [unelected_pods.OFF]}]
    assert terms(a_pod(tolerations=[{"operator": "Exists", "effect": "NoSchedule"}]))


def test_its_own_terms_are_kept_and_a_second_call_changes_nothing():
    own = {"key": "disk", "operator": "In", "values": ["ssd"]}
    wanted = [{"matchExpressions": [own]}, {"matchFields": [own]}, {}]
    pod = a_pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": wanted}}, "podAffinity": {"x": 1}})
    once = mutated(pod)
    assert terms(pod) == [
        {"matchExpressions": [own, unelected_pods.OFF]},
        {"matchFields": [own], "matchExpressions": [unelected_pods.OFF]},
        {},
    ]
    assert once["spec"]["affinity"]["podAffinity"] == {"x": 1}
    assert mutated(once) == once


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        a_pod(tolerations=[{"operator": "Exists", "effect": "NoExecute"}]),
        a_pod(tolerations=None),
        a_pod(nodeName="n1"),
        a_pod(nodeSelector={keys.PROVIDER_TAINT: "admiralty"}),
        a_pod({"ownerReferences": [{"kind": "DaemonSet", "name": "logs"}]}),
    ],
)
def test_other_pods_are_untouched(pod):
    assert mutated(pod) is pod


def test_these_pods_do_not_depend_on_the_webhook():
    made = configuration.of(MUTATIONS, "https://127.0.0.1:1/mutate", ca=b"x")
    needed, optional = made.get("webhooks")
    assert (needed["failurePolicy"], optional["failurePolicy"], optional["timeoutSeconds"]) == ("Fail", "Ignore", 1)
    assert "namespaceSelector" in needed
    assert "namespaceSelector" not in optional
    assert [one["name"] for one in optional["matchConditions"]] == [
        "not-elected",
        "no-daemon-set",
        "tolerates-everything",
    ]
