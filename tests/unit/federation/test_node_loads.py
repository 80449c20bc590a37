"""What a target publishes of its nodes: by shape, and of a bounded number of shapes."""

from hansa.federation import node_loads, summaries
from hansa.federation.node_loads import NodeLoads
from hansa.kube.objects import Object
from scheduling_things import HOST, ZONE, a_node, a_pod, answer

MACHINE = "rke.cattle.io/machine"


def loads(*things):
    made = NodeLoads()
    for thing in things:
        made.node(thing.name, thing) if thing.kind == "Node" else made.pod(thing.key, thing)
    return made


def read(made):
    head = {"apiVersion": "multicluster.admiralty.io/v1alpha1", "kind": "ClusterSummary"}
    summary = Object.of({**head, "metadata": {"name": "singleton", "labels": made.labels()}, **made.summary()})
    return summaries.read("c2", summary, lambda _key, _value: False)


def test_a_source_reads_what_is_free_on_each_node():
    found = read(loads(a_node("n1"), a_node("n2", labels={ZONE: "z1"}), a_pod("p", on="n1", cpu="3")))
    assert answer(a_pod(cpu="2", nodeSelector={HOST: "n1"}), found.scheduling).startswith("c2: ")
    assert answer(a_pod(cpu="2", nodeSelector={HOST: "n2", ZONE: "z1"}), found.scheduling).startswith("c2/")


def test_a_label_with_a_value_per_node_does_not_make_a_shape_per_node():
    nodes = [a_node(f"n{number}", labels={MACHINE: f"m{number}", ZONE: f"z{number % 3}"}) for number in range(400)]
    made = loads(*nodes)
    shapes = made.summary()["shapes"]
    assert [one["labels"] for one in shapes] == [{ZONE: f"z{number}"} for number in range(3)]
    assert sum(one["count"] for shape in shapes for one in shape["nodes"]) == len(nodes)
    assert len(list(read(made).scheduling.nodes())) == len(nodes)


def test_few_nodes_keep_all_their_labels():
    nodes = [a_node(f"n{number}", labels={MACHINE: f"m{number}"}) for number in range(node_loads.MOST_SHAPES)]
    assert len(loads(*nodes).summary()["shapes"]) == node_loads.MOST_SHAPES
