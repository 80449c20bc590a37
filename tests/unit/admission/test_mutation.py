"""Mutations apply in order, to the objects that they are for, and the webhook's configuration is built from them."""

import base64
import json

from hansa.admission import configuration, mutation, review
from hansa.admission.mutation import Mutation, Operation, Refusal, Refused, Request, Selection
from hansa.kube import resources
from hansa.kube.resource import Resource

SOURCES = Resource("multicluster.admiralty.io", "v1alpha1", "sources")
ELECT = "multicluster.admiralty.io/elect"
NOT_SYSTEM = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
ENABLED = {"key": "multicluster-scheduler", "operator": "In", "values": ["enabled"]}


def appending(word, **more):
    """A mutation that appends a word to spec.words."""

    def mutate(request, _caches):
        return {**request.object, "spec": {"words": [*request.object["spec"].get("words", []), word]}}

    return Mutation(**{"name": word, "resources": (resources.PODS,), "mutate": mutate, **more})


def refusing(field="spec.x", value=1, remedy="remove it", **more):
    def mutate(_request, _caches):
        raise Refused(field, value, remedy)

    return Mutation(**{"name": "refusing", "resources": (resources.PODS,), "mutate": mutate, **more})


def request(obj=None, *, resource=resources.PODS, operation=Operation.CREATE, namespace="shop"):
    return Request(resource, operation, namespace, obj or {"spec": {}})


def result(*mutations, **how):
    return mutation.mutated(request(**how), mutations, {})


def test_mutations_apply_in_their_order_and_each_sees_the_result_of_the_one_before():
    assert result(appending("a"), appending("b")) == {"spec": {"words": ["a", "b"]}}
    assert result(appending("b"), appending("a")) == {"spec": {"words": ["b", "a"]}}


def test_two_mutations_give_one_patch():
    received = {
        "uid": "7",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "object": {"spec": {}},
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "request": received}).encode()
    response = json.loads(review.respond(body, (appending("a"), appending("b")), {}))["response"]
    patch = json.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "add", "path": "/spec/words", "value": ["a", "b"]}]


def test_a_refusal_ends_the_list():
    refused = Refusal("refusing", "spec.x: Invalid value: 1: remove it")
    assert result(appending("a"), refusing(), appending("b")) == refused


def test_a_long_value_is_cut_in_the_message():
    refused = result(refusing(value="x" * 10_000))
    assert len(refused.message) < 200
    assert refused.message.endswith("x…: remove it")


def test_a_mutation_for_another_resource_or_operation_does_not_apply():
    unchanged = {"spec": {}}
    assert result(refusing(resources=(SOURCES,))) == unchanged
    assert result(refusing(operations=(Operation.UPDATE,))) == unchanged
    assert result(refusing(), operation=Operation.UPDATE) == unchanged
    assert isinstance(result(refusing(resources=(SOURCES, resources.PODS))), Refusal)


def test_a_cluster_scoped_resource_is_recognised():
    """The namespace of a review of a Namespace is its own name."""
    applied = result(appending("a", resources=(resources.NAMESPACES,)), resource=Resource("", "v1", "namespaces"))
    assert applied == {"spec": {"words": ["a"]}}


def test_a_selection_can_read_annotations():
    elected = Selection(matches=lambda request: ELECT in request.object.get("metadata", {}).get("annotations", {}))
    elect = appending("elected", selection=elected)
    assert result(elect) == {"spec": {}}
    pod = {"metadata": {"annotations": {ELECT: ""}}, "spec": {}}
    assert result(elect, obj=pod) == {**pod, "spec": {"words": ["elected"]}}


def webhook(*mutations, **more):
    [found] = configuration.of(mutations, "https://127.0.0.1/mutate", ca=b"", **more).get("webhooks")
    return found


def test_the_rules_of_the_configuration_come_from_the_mutations():
    both = (Operation.CREATE, Operation.UPDATE)
    mutations = (appending("a"), appending("b"), refusing(resources=(SOURCES, resources.NAMESPACES), operations=both))
    assert webhook(*mutations)["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "Namespaced",
        },
        {
            "apiGroups": ["multicluster.admiralty.io"],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["sources"],
            "scope": "Namespaced",
        },
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["namespaces"],
            "scope": "Cluster",
        },
    ]


def test_the_selectors_of_the_configuration_send_what_any_of_the_mutations_applies_to():
    narrow = Selection(namespace_selector=(NOT_SYSTEM, ENABLED), object_selector=(ENABLED,))
    wide = Selection(namespace_selector=(NOT_SYSTEM,))
    alone = webhook(appending("a", selection=narrow))
    assert alone["namespaceSelector"] == {"matchExpressions": [NOT_SYSTEM, ENABLED]}
    assert alone["objectSelector"] == {"matchExpressions": [ENABLED]}
    together = webhook(appending("a", selection=narrow), appending("b", selection=wide))
    assert together["namespaceSelector"] == {"matchExpressions": [NOT_SYSTEM]}
    assert "objectSelector" not in together
    assert "namespaceSelector" not in webhook(appending("a", selection=wide), appending("b"))


def test_the_configuration_and_its_webhook_can_be_named():
    made = configuration.of((appending("a"),), "https://h/", ca=b"", name="hansa-federation", webhook="elect.hansa.dev")
    assert made.name == "hansa-federation"
    assert made.get("webhooks")[0]["name"] == "elect.hansa.dev"
