"""Pods are kept off nodes that refused their owner."""

from hansa.admission import refused_nodes
from hansa.admission.constraints import REQUIRED
from hansa.model import keys

EXCLUDED = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["vn1", "vn2"]}


def terms(pod):
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_a_pod_without_affinity_gets_one_and_the_change_is_idempotent():
    made = refused_nodes.avoid({"metadata": {"name": "p"}, "spec": {}}, ["vn1", "vn2"])
    assert terms(made) == [{"matchExpressions": [EXCLUDED]}]
    assert made["metadata"]["annotations"] == {keys.AVOIDS: "vn1,vn2"}
    assert refused_nodes.avoid(made, ["vn1", "vn2"]) == made


def test_every_alternative_excludes_the_nodes_and_the_rest_stays():
    expression = {"key": "clusterID", "operator": "Exists"}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}, {"matchFields": ["x"]}]}
    affinity = {"nodeAffinity": {REQUIRED: required, "p": 1}, "podAffinity": {}}
    made = refused_nodes.avoid({"spec": {"affinity": affinity}}, ["vn1", "vn2"])
    assert terms(made) == [
        {"matchExpressions": [expression, EXCLUDED]},
        {"matchFields": ["x"], "matchExpressions": [EXCLUDED]},
    ]
    assert (made["spec"]["affinity"]["podAffinity"], made["spec"]["affinity"]["nodeAffinity"]["p"]) == ({}, 1)


def test_an_annotation_of_a_template_is_not_believed():
    template = {"metadata": {"annotations": {keys.AVOIDS: "vn9", "a": "b"}}, "spec": {}}
    assert refused_nodes.avoid(template, [])["metadata"]["annotations"] == {"a": "b"}
    made = refused_nodes.avoid(template, ["vn1", "vn2"])
    assert made["metadata"]["annotations"] == {"a": "b", keys.AVOIDS: "vn1,vn2"}
    assert terms(made) == [{"matchExpressions": [EXCLUDED]}]


def test_a_pod_with_a_node_or_nothing_to_avoid_stays_as_it_is():
    for pod, nodes in (({"spec": {"nodeName": "vn1"}}, ["vn1"]), ({"spec": {}}, [])):
        assert refused_nodes.avoid(pod, nodes) == pod
