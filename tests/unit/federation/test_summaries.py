"""A ClusterSummary is the word of another cluster: what is read of it is bounded, and what is wrong with it is said."""

import pytest

from hansa.federation import summaries
from hansa.kube.objects import Object

FREE = {"cpu": "8", "memory": "32Gi"}


def read(labels=None, **fields):
    head = {"apiVersion": "multicluster.admiralty.io/v1alpha1", "kind": "ClusterSummary"}
    made = Object.of({**head, "metadata": {"name": "singleton", "labels": labels or {}}, **fields})
    return summaries.read("c2", made, lambda _key, _value: False)


def shape(count=1, free=None, **fields):
    return {"nodes": [{"count": count, "free": free or FREE}], **fields}


def many(number, value="1"):
    return {f"example.com/{index}": value for index in range(number)}


def test_nodes_of_a_shape_have_its_labels_and_their_hostnames():
    nodes = [{"count": 2, "free": FREE, "hostnames": ["a"]}]
    found = read(shapes=[{"labels": {"zone": "z1"}, "nodes": nodes}])
    assert [node.labels() for node in found.scheduling.nodes()] == [
        {"zone": "z1", "kubernetes.io/hostname": "a"},
        {"zone": "z1"},
    ]
    assert found.problem == ""


@pytest.mark.parametrize("shapes", [[shape(10**30)], [shape()] * 20_000, [shape(0), shape(-5)]])
def test_a_claimed_number_of_nodes_is_bounded(shapes):
    found = read(shapes=shapes)
    assert found.problem == ""
    assert len(list(found.scheduling.nodes())) <= summaries.MOST_NODES


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"labels": many(1000)}, "1000 labels, more than 256"),
        ({"allocatable": many(1000)}, "1000 resources in allocatable, more than 64"),
        ({"shapes": [shape(labels=many(1000))]}, "1000 labels of shapes[0]"),
        ({"shapes": [shape(), shape(free=many(1000))]}, "1000 free resources of shapes[1]"),
        ({"shapes": [shape(taints=[{"key": "k", "effect": "NoSchedule"}] * 1000)]}, "1000 taints of shapes[0]"),
        ({"shapes": [shape(labels={"a": "x" * 3_000_000})]}, "bytes, more than"),
        ({"allocatable": {"cpu": "much"}}, '"much" is not a quantity'),
        ({"shapes": [shape(taints=[{"no": "key"}])]}, "malformed"),
    ],
)
def test_what_no_cluster_has_is_refused_and_named(fields, text):
    assert text in read(**fields).problem
