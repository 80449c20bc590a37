"""Constraints move into the annotation in tensile-kube's format, nothing is lost, and the mutation is idempotent."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.admission import constraints
from hansa.admission.constraint_split import UpperNodes
from hansa.admission.constraints import NODE_FAILURES, PREFERRED, REQUIRED
from hansa.admission.mutation import Refused
from hansa.kube.language import affinity, tolerations
from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.model.translation.tensile.pod.constraints import restore_constraints

# The annotation in the documentation of tensile-kube.
SEED = (
    '{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"},'
    '{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test1","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test2","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test3","operator":"Exists","effect":"NoExecute"}]}'
)
UPPER = UpperNodes(is_node={"vn1", "vn2"}.__contains__)


def pod(annotation=None, **spec):
    annotations = {"annotations": {"clusterSelector": annotation}} if annotation is not None else {}
    return {
        "metadata": {"name": "p", **annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}], "securityContext": {}, **spec},
    }


def annotated(result):
    return json.loads(result["metadata"]["annotations"]["clusterSelector"])


def toleration(key, **more):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **more}


def expression(key, *values, operator="In"):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def required(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def term(*expressions):
    return {"matchExpressions": list(expressions)}


def test_the_annotation_has_the_format_of_tensile_kube():
    result = constraints.move_constraints(pod(tolerations=json.loads(SEED)["tolerations"]), UPPER)
    assert result["metadata"]["annotations"]["clusterSelector"] == SEED


def test_a_node_failure_is_tolerated_without_limit_on_the_virtual_node_and_as_requested_on_the_lower_node():
    asked = [toleration(one["key"], tolerationSeconds=300) for one in NODE_FAILURES] + [toleration("test")]
    result = constraints.move_constraints(pod(tolerations=asked), UPPER)
    assert annotated(result) == {"tolerations": asked}
    assert result["spec"]["tolerations"] == [*NODE_FAILURES, toleration("test")]


def test_a_toleration_of_everything_with_a_limit_does_not_limit_node_failures():
    asked = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    above = constraints.move_constraints(pod(tolerations=asked), UPPER)["spec"]["tolerations"]
    lost = [tolerations.Taint("node.kubernetes.io/unreachable", effect="NoExecute")]
    read = [tolerations.Toleration(one.get("key", ""), one["operator"], "", one["effect"]) for one in above]
    assert tolerations.seconds_until_eviction(lost, read) == float("inf")


def test_labels_of_lower_nodes_move_and_those_of_virtual_nodes_stay():
    asked = {"disk": "ssd", "clusterID": "hamburg", "type": "virtual-kubelet", "kubernetes.io/hostname": "vn1"}
    result = constraints.move_constraints(pod(nodeSelector=asked), UPPER)
    assert annotated(result) == {"nodeSelector": {"disk": "ssd"}}
    assert result["spec"]["nodeSelector"] == {key: asked[key] for key in asked if key != "disk"}


def test_a_type_or_hostname_that_no_upper_node_has_moves():
    asked = {"type": "gpu", "kubernetes.io/hostname": "rack-7"}
    result = constraints.move_constraints(pod(nodeSelector=asked), UPPER)
    assert annotated(result) == {"nodeSelector": asked}
    assert "nodeSelector" not in result["spec"]


def test_configured_keys_stay():
    result = constraints.move_constraints(pod(nodeSelector={"region": "north"}), UpperNodes(frozenset({"region"})))
    assert annotated(result) == {}
    assert result["spec"]["nodeSelector"] == {"region": "north"}


def test_node_affinity_moves_and_affinity_between_pods_stays():
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
    liked = [{"weight": 3, "preference": term(expression("disk", "ssd"), expression("clusterID", "b"))}]
    asked = required(term(expression("cpu", "8", operator="Gt")), term(expression("gpu", operator="Exists")))
    asked["nodeAffinity"][PREFERRED] = liked
    result = constraints.move_constraints(pod(affinity=asked | apart), UPPER)
    below = required(*asked["nodeAffinity"][REQUIRED]["nodeSelectorTerms"])
    below["nodeAffinity"][PREFERRED] = [{"weight": 3, "preference": term(expression("disk", "ssd"))}]
    assert annotated(result) == {"affinity": below}
    above = {"nodeAffinity": {PREFERRED: [{"weight": 3, "preference": term(expression("clusterID", "b"))}]}}
    assert result["spec"]["affinity"] == apart | above


def test_a_daemon_sets_pod_stays_on_its_node():
    mine = {"matchFields": [expression("metadata.name", "vn1")], "matchExpressions": [expression("disk", "ssd")]}
    result = constraints.move_constraints(pod(affinity=required(mine)), UPPER)
    assert result["spec"]["affinity"] == required({"matchFields": mine["matchFields"]})
    assert annotated(result) == {"affinity": required(term(expression("disk", "ssd")))}


def test_one_cluster_with_a_choice_of_nodes_is_split_exactly():
    here = expression("clusterID", "a")
    asked = required(term(here, expression("disk", "ssd")), term(here, expression("gpu", operator="Exists")))
    result = constraints.move_constraints(pod(affinity=asked), UPPER)
    assert result["spec"]["affinity"] == required(term(here))
    assert annotated(result)["affinity"] == required(
        term(expression("disk", "ssd")), term(expression("gpu", operator="Exists"))
    )


def test_a_choice_between_a_whole_cluster_and_some_of_its_nodes_leaves_all_of_them():
    here = expression("clusterID", "a")
    result = constraints.move_constraints(
        pod(affinity=required(term(here), term(here, expression("disk", "ssd")))), UPPER
    )
    assert result["spec"]["affinity"] == required(term(here))
    assert annotated(result) == {}


def test_terms_that_differ_in_both_halves_are_restored_by_cluster():
    a, b = expression("clusterID", "a"), expression("clusterID", "b")
    asked = required(term(a, expression("disk", "ssd")), term(b, expression("disk", "hdd")))
    result = constraints.move_constraints(pod(affinity=asked), UPPER)
    assert result["spec"]["affinity"] == required(term(a), term(b))
    assert annotated(result) == {
        "alternatives": [
            {"above": term(a), "below": term(expression("disk", "ssd"))},
            {"above": term(b), "below": term(expression("disk", "hdd"))},
        ]
    }
    for cluster, disk in (("a", "ssd"), ("b", "hdd")):
        assert restored(result, {"clusterID": cluster})["affinity"] == required(term(expression("disk", disk)))
    unknown = restored(result, {})
    assert unknown["affinity"] == required(term(expression("disk", "ssd")), term(expression("disk", "hdd")))


def test_a_term_added_later_must_match_in_every_cluster():
    a, b = expression("clusterID", "a"), expression("clusterID", "b")
    first = constraints.move_constraints(pod(affinity=required(term(a, expression("x", "1")), term(b))), UPPER)
    first["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] = [term(expression("y", "1"))]
    second = constraints.move_constraints(first, UPPER)
    both = term(expression("x", "1"), expression("y", "1"))
    assert restored(second, {"clusterID": "a"})["affinity"] == required(both)
    assert restored(second, {"clusterID": "b"})["affinity"] == required(term(expression("y", "1")))


def restored(result, labels):
    """The constraints in the cluster of a virtual node with these labels."""
    link = Link("upper", "id", "lower", LinkSettings(node="vn1", node_labels=labels))
    return restore_constraints(result["spec"], Object.of(result), link)


def test_constraints_added_by_another_webhook_move_too():
    first = constraints.move_constraints(
        pod(nodeSelector={"disk": "ssd"}, affinity=required(term(expression("a", "1")), term(expression("b", "1")))),
        UPPER,
    )
    first["spec"]["nodeSelector"] = {"gpu": "yes"}
    first["spec"]["affinity"] = required(term(expression("c", "1")))
    first["spec"]["tolerations"].append(toleration("late"))
    second = annotated(constraints.move_constraints(first, UPPER))
    assert second["nodeSelector"] == {"disk": "ssd", "gpu": "yes"}
    assert second["affinity"] == required(
        term(expression("a", "1"), expression("c", "1")), term(expression("b", "1"), expression("c", "1"))
    )
    assert second["tolerations"] == [toleration("late")]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (pod("{"), r'metadata.annotations\[clusterSelector\]: Invalid value: "{": must be a JSON object'),
        (pod('{"nodeSelector":3}'), r"metadata.annotations\[clusterSelector\].nodeSelector: Invalid value: 3: "),
        (
            pod('{"nodeSelector":{"disk":"ssd"}}', nodeSelector={"disk": "hdd"}),
            'spec.nodeSelector: Invalid value: {"disk":"hdd"}: must not differ from the annotation clusterSelector',
        ),
        (pod('{"alternatives":[3]}'), r"metadata.annotations\[clusterSelector\].alternatives: Invalid value: \[3\]: "),
        (pod('{"alternatives":[{"below":{"matchExpressions":[{"key":"-","operator":"Exists"}]}}]}'), "alternatives"),
        (pod(nodeSelector={"-": "x"}), 'spec.nodeSelector: Invalid value: {"-":"x"}: .*"-"'),
        (pod(nodeSelector=["x"]), r'spec.nodeSelector: Invalid value: \["x"\]: '),
        (pod(tolerations=[{"key": 3}]), r'spec.tolerations: Invalid value: \[{"key":3}\]: '),
        (pod(affinity=required(term(expression("disk", "ssd", operator="Near")))), 'spec.affinity: .*"Near"'),
        (pod(affinity=required(term(expression("disk", operator="In")))), 'spec.affinity: .*"disk"'),
    ],
)
def test_an_invalid_constraint_is_refused_with_its_field(broken, message):
    with pytest.raises(Refused, match=message):
        constraints.move_constraints(broken, UPPER)


# -- properties

KEYS = st.sampled_from(["clusterID", "type", "kubernetes.io/hostname", "disk", "gpu", "zone"])
VALUES = st.sampled_from(["virtual-kubelet", "vn1", "vn2", "a", "b"])
EXPRESSIONS = st.one_of(
    st.builds(lambda key, values, operator: expression(key, *values, operator=operator), KEYS,
              st.lists(VALUES, min_size=1, max_size=2, unique=True), st.sampled_from(["In", "NotIn"])),
    st.builds(lambda key, operator: expression(key, operator=operator), KEYS,
              st.sampled_from(["Exists", "DoesNotExist"])),
)  # fmt: skip
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(EXPRESSIONS, max_size=3),
        "matchFields": st.lists(st.just(expression("metadata.name", "vn1")), max_size=1),
    },
)
NODE_AFFINITY = st.fixed_dictionaries(
    {},
    optional={
        REQUIRED: st.fixed_dictionaries({"nodeSelectorTerms": st.lists(TERMS, min_size=1, max_size=3)}),
        PREFERRED: st.lists(st.fixed_dictionaries({"weight": st.just(1), "preference": TERMS}), max_size=2),
    },
)
TOLERATIONS = st.lists(
    st.one_of(
        st.sampled_from([*NODE_FAILURES, {"operator": "Exists"}, toleration("test")]),
        st.sampled_from([toleration(one["key"], tolerationSeconds=300) for one in NODE_FAILURES]),
    ),
    max_size=4,
    unique_by=json.dumps,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeSelector": st.dictionaries(KEYS, VALUES, max_size=3),
        "affinity": st.fixed_dictionaries(
            {}, optional={"nodeAffinity": NODE_AFFINITY, "podAffinity": st.just({"x": 1})}
        ),
        "tolerations": TOLERATIONS,
    },
)  # fmt: skip
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)


def mutated_pod(spec):
    return constraints.move_constraints(pod(**copy.deepcopy(spec)), UPPER)


@given(SPECS)
def test_the_mutation_is_idempotent(spec):
    once = mutated_pod(spec)
    assert constraints.move_constraints(copy.deepcopy(once), UPPER) == once


@given(SPECS, LABELS, LABELS)
def test_the_two_halves_together_match_what_the_original_matches(spec, above, below):
    """A virtual node and a lower node that don't share a label key are one node with the labels of both."""
    labels_above = {key: value for key, value in above.items() if UPPER.has_label(key, (value,))}
    labels_below = {key: value for key, value in below.items() if key in ("disk", "gpu", "zone")}
    result = mutated_pod(_without_absence(spec))
    original = affinity.of_pod_spec(_without_absence(spec)).matches("vn1", labels_above | labels_below)
    upper = affinity.of_pod_spec(result["spec"]).matches("vn1", labels_above)
    lower = affinity.of_pod_spec(restored(result, labels_above)).matches("n1", labels_below)
    assert original == (upper and lower)


@given(SPECS)
def test_every_toleration_is_kept_for_the_lower_pod(spec):
    assert annotated(mutated_pod(spec)).get("tolerations", []) == spec.get("tolerations", [])


@given(SPECS)
def test_the_lower_pod_gets_the_constraints_that_the_user_wrote(spec):
    asked = _of_lower_nodes(spec)
    above = constraints.move_constraints(pod(**copy.deepcopy(asked)), UPPER)
    link = Link("upper", "id", "lower", LinkSettings(node="vn1"))
    below = restore_constraints(above["spec"], Object.of(above), link)
    for field in ("nodeSelector", "affinity", "tolerations"):
        assert (below.get(field) or {}) == (asked.get(field) or {})


def _of_lower_nodes(spec):
    """The same without conditions on virtual nodes, and without terms that match no node."""

    def kept(one):
        return one["key"] in ("disk", "gpu", "zone")

    whole = copy.deepcopy(spec)
    whole["nodeSelector"] = {key: value for key, value in whole.get("nodeSelector", {}).items() if kept({"key": key})}
    others, nodes = whole.pop("affinity", {}), {}
    wanted = others.pop("nodeAffinity", {})
    terms = [term(*found) for one in wanted.get(REQUIRED, {}).get("nodeSelectorTerms", [])
             if (found := [e for e in one.get("matchExpressions", []) if kept(e)])]  # fmt: skip
    liked = [{"weight": one["weight"], "preference": term(*found)} for one in wanted.get(PREFERRED, [])
             if (found := [e for e in one["preference"].get("matchExpressions", []) if kept(e)])]  # fmt: skip
    if distinct := [one for number, one in enumerate(terms) if one not in terms[:number]]:
        nodes[REQUIRED] = {"nodeSelectorTerms": distinct}
    if liked:
        nodes[PREFERRED] = liked
    return whole | {"affinity": others | ({"nodeAffinity": nodes} if nodes else {})}


def _without_absence(spec):
    """Without conditions that match a missing label: they depend on which of the two nodes lacks it."""

    def kept(one):
        return one["operator"] in ("In", "Exists") and one["key"] not in ("type", "kubernetes.io/hostname")

    text = json.loads(json.dumps(spec))
    nodes = text.get("affinity", {}).get("nodeAffinity", {})
    terms = [
        *nodes.get(REQUIRED, {}).get("nodeSelectorTerms", []),
        *(p["preference"] for p in nodes.get(PREFERRED, [])),
    ]
    for one in terms:
        one["matchExpressions"] = [e for e in one.get("matchExpressions", []) if kept(e)]
    text["nodeSelector"] = {
        key: value
        for key, value in text.get("nodeSelector", {}).items()
        if key not in ("type", "kubernetes.io/hostname")
    }
    return text
