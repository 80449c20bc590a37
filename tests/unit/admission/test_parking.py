"""Constraints move into the annotation as the seed shows it, nothing is lost, and a second time changes nothing."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.admission import parking
from hansa.admission.parking import FOR_EVER, PREFERRED, REQUIRED, Malformed
from hansa.admission.steering import Steering
from hansa.kube import affinity, tolerations
from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.pod import constraints
from hansa.model.translation.settings import Settings as LinkSettings

# The annotation in tensile-kube's own description.
SEED = (
    '{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"},'
    '{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test1","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test2","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test3","operator":"Exists","effect":"NoExecute"}]}'
)
HOW = Steering(is_node={"vn1", "vn2"}.__contains__)


def pod(annotation=None, **spec):
    annotations = {"annotations": {"clusterSelector": annotation}} if annotation is not None else {}
    return {
        "metadata": {"name": "p", **annotations},
        "spec": {"containers": [{"name": "c", "image": "i"}], "securityContext": {}, **spec},
    }


def parked(result):
    return json.loads(result["metadata"]["annotations"]["clusterSelector"])


def toleration(key, **more):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **more}


def expression(key, *values, operator="In"):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def required(*terms):
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def term(*expressions):
    return {"matchExpressions": list(expressions)}


def test_tolerations_look_as_the_seed_shows_them():
    result = parking.park(pod(tolerations=json.loads(SEED)["tolerations"]), HOW)
    assert result["metadata"]["annotations"]["clusterSelector"] == SEED


def test_a_virtual_node_that_is_not_ready_is_tolerated_for_ever_above_and_as_long_as_asked_below():
    asked = [toleration(one["key"], tolerationSeconds=300) for one in FOR_EVER] + [toleration("test")]
    result = parking.park(pod(tolerations=asked), HOW)
    assert parked(result) == {"tolerations": asked}
    assert result["spec"]["tolerations"] == [*FOR_EVER, toleration("test")]


def test_for_ever_holds_even_beside_a_toleration_of_everything_for_a_while():
    asked = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    above = parking.park(pod(tolerations=asked), HOW)["spec"]["tolerations"]
    lost = [tolerations.Taint("node.kubernetes.io/unreachable", effect="NoExecute")]
    read = [tolerations.Toleration(one.get("key", ""), one["operator"], "", one["effect"]) for one in above]
    assert tolerations.stay(lost, read) == float("inf")


def test_labels_of_nodes_move_and_those_of_clusters_stay():
    asked = {"disk": "ssd", "clusterID": "hamburg", "type": "virtual-kubelet", "kubernetes.io/hostname": "vn1"}
    result = parking.park(pod(nodeSelector=asked), HOW)
    assert parked(result) == {"nodeSelector": {"disk": "ssd"}}
    assert result["spec"]["nodeSelector"] == {key: asked[key] for key in asked if key != "disk"}


def test_a_type_or_hostname_that_no_upper_node_has_is_meant_for_below():
    asked = {"type": "gpu", "kubernetes.io/hostname": "rack-7"}
    result = parking.park(pod(nodeSelector=asked), HOW)
    assert parked(result) == {"nodeSelector": asked}
    assert "nodeSelector" not in result["spec"]


def test_more_keys_can_be_told_to_stay():
    result = parking.park(pod(nodeSelector={"region": "north"}), Steering(frozenset({"region"})))
    assert parked(result) == {}
    assert result["spec"]["nodeSelector"] == {"region": "north"}


def test_node_affinity_moves_and_affinity_between_pods_stays():
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
    liked = [{"weight": 3, "preference": term(expression("disk", "ssd"), expression("clusterID", "b"))}]
    asked = required(term(expression("cpu", "8", operator="Gt")), term(expression("gpu", operator="Exists")))
    asked["nodeAffinity"][PREFERRED] = liked
    result = parking.park(pod(affinity=asked | apart), HOW)
    below = required(*asked["nodeAffinity"][REQUIRED]["nodeSelectorTerms"])
    below["nodeAffinity"][PREFERRED] = [{"weight": 3, "preference": term(expression("disk", "ssd"))}]
    assert parked(result) == {"affinity": below}
    above = {"nodeAffinity": {PREFERRED: [{"weight": 3, "preference": term(expression("clusterID", "b"))}]}}
    assert result["spec"]["affinity"] == apart | above


def test_a_daemon_sets_pod_stays_on_its_node():
    mine = {"matchFields": [expression("metadata.name", "vn1")], "matchExpressions": [expression("disk", "ssd")]}
    result = parking.park(pod(affinity=required(mine)), HOW)
    assert result["spec"]["affinity"] == required({"matchFields": mine["matchFields"]})
    assert parked(result) == {"affinity": required(term(expression("disk", "ssd")))}


def test_one_cluster_with_a_choice_of_nodes_is_split_exactly():
    here = expression("clusterID", "a")
    asked = required(term(here, expression("disk", "ssd")), term(here, expression("gpu", operator="Exists")))
    result = parking.park(pod(affinity=asked), HOW)
    assert result["spec"]["affinity"] == required(term(here))
    assert parked(result)["affinity"] == required(
        term(expression("disk", "ssd")), term(expression("gpu", operator="Exists"))
    )


def test_a_choice_between_a_whole_cluster_and_some_of_its_nodes_leaves_all_of_them():
    here = expression("clusterID", "a")
    result = parking.park(pod(affinity=required(term(here), term(here, expression("disk", "ssd")))), HOW)
    assert result["spec"]["affinity"] == required(term(here))
    assert parked(result) == {}


def test_other_nodes_in_other_clusters_are_told_apart_where_the_pod_comes_to_be():
    a, b = expression("clusterID", "a"), expression("clusterID", "b")
    asked = required(term(a, expression("disk", "ssd")), term(b, expression("disk", "hdd")))
    result = parking.park(pod(affinity=asked), HOW)
    assert result["spec"]["affinity"] == required(term(a), term(b))
    assert parked(result) == {
        "alternatives": [
            {"above": term(a), "below": term(expression("disk", "ssd"))},
            {"above": term(b), "below": term(expression("disk", "hdd"))},
        ]
    }
    for cluster, disk in (("a", "ssd"), ("b", "hdd")):
        assert put_back(result, {"clusterID": cluster})["affinity"] == required(term(expression("disk", disk)))
    unknown = put_back(result, {})
    assert unknown["affinity"] == required(term(expression("disk", "ssd")), term(expression("disk", "hdd")))


def test_what_comes_later_must_hold_in_every_cluster():
    a, b = expression("clusterID", "a"), expression("clusterID", "b")
    first = parking.park(pod(affinity=required(term(a, expression("x", "1")), term(b))), HOW)
    first["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] = [term(expression("y", "1"))]
    second = parking.park(first, HOW)
    both = term(expression("x", "1"), expression("y", "1"))
    assert put_back(second, {"clusterID": "a"})["affinity"] == required(both)
    assert put_back(second, {"clusterID": "b"})["affinity"] == required(term(expression("y", "1")))


def put_back(result, labels):
    """The constraints in the cluster of a virtual node with these labels."""
    link = Link("upper", "id", "lower", LinkSettings(node="vn1", node_labels=labels))
    return constraints.restore_constraints(result["spec"], Object.of(result), link)


def test_what_another_webhook_adds_later_is_added_to_what_was_moved():
    first = parking.park(
        pod(nodeSelector={"disk": "ssd"}, affinity=required(term(expression("a", "1")), term(expression("b", "1")))),
        HOW,
    )
    first["spec"]["nodeSelector"] = {"gpu": "yes"}
    first["spec"]["affinity"] = required(term(expression("c", "1")))
    first["spec"]["tolerations"].append(toleration("late"))
    second = parked(parking.park(first, HOW))
    assert second["nodeSelector"] == {"disk": "ssd", "gpu": "yes"}
    assert second["affinity"] == required(
        term(expression("a", "1"), expression("c", "1")), term(expression("b", "1"), expression("c", "1"))
    )
    assert second["tolerations"] == [toleration("late")]


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (pod("{"), "the annotation clusterSelector is not a JSON object"),
        (pod('{"nodeSelector":3}'), "the annotation clusterSelector: the node constraints of a pod cannot be read"),
        (pod('{"nodeSelector":{"disk":"ssd"}}', nodeSelector={"disk": "hdd"}), "differ in disk"),
        (pod('{"alternatives":[3]}'), "the alternatives cannot be read"),
        (pod('{"alternatives":[{"below":{"matchExpressions":[{"key":"-","operator":"Exists"}]}}]}'), '"-" cannot be'),
        (pod(nodeSelector={"-": "x"}), '"-" cannot be a label\'s key'),
        (pod(nodeSelector=["x"]), "the node constraints of a pod cannot be read"),
        (pod(tolerations=[{"key": 3}]), "the tolerations of a pod cannot be read"),
        (pod(affinity=required(term(expression("disk", "ssd", operator="Near")))), '"Near" on label "disk"'),
        (pod(affinity=required(term(expression("disk", operator="In")))), 'In on label "disk" needs a value'),
    ],
)
def test_what_cannot_be_understood_is_refused_with_a_sentence(broken, sentence):
    with pytest.raises(Malformed, match=sentence):
        parking.park(broken, HOW)


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
        st.sampled_from([*FOR_EVER, {"operator": "Exists"}, toleration("test")]),
        st.sampled_from([toleration(one["key"], tolerationSeconds=300) for one in FOR_EVER]),
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


def parked_pod(spec):
    return parking.park(pod(**copy.deepcopy(spec)), HOW)


@given(SPECS)
def test_a_second_time_changes_nothing(spec):
    once = parked_pod(spec)
    assert parking.park(copy.deepcopy(once), HOW) == once


@given(SPECS, LABELS, LABELS)
def test_both_conditions_together_are_the_original_one(spec, above, below):
    """A virtual node and a lower node that don't share a label key are one node with the labels of both."""
    labels_above = {key: value for key, value in above.items() if HOW.has_label(key, (value,))}
    labels_below = {key: value for key, value in below.items() if key in ("disk", "gpu", "zone")}
    result = parked_pod(_without_absence(spec))
    original = affinity.of_pod_spec(_without_absence(spec)).matches("vn1", labels_above | labels_below)
    upper = affinity.of_pod_spec(result["spec"]).matches("vn1", labels_above)
    lower = affinity.of_pod_spec(put_back(result, labels_above)).matches("n1", labels_below)
    assert original == (upper and lower)


@given(SPECS)
def test_every_toleration_counts_below_as_it_was_written(spec):
    assert parked(parked_pod(spec)).get("tolerations", []) == spec.get("tolerations", [])


@given(SPECS)
def test_what_is_put_back_below_is_what_was_asked_for(spec):
    asked = _of_lower_nodes(spec)
    above = parking.park(pod(**copy.deepcopy(asked)), HOW)
    link = Link("upper", "id", "lower", LinkSettings(node="vn1"))
    below = constraints.restore_constraints(above["spec"], Object.of(above), link)
    for field in ("nodeSelector", "affinity", "tolerations"):
        assert (below.get(field) or {}) == (asked.get(field) or {})


def _of_lower_nodes(spec):
    """The same without a word that steers the upper scheduler, and without what selects no node at all."""

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
    """Without conditions that are met by a missing label: which of the two nodes lacks it would decide them."""

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
