"""Steps of a pod's translation whose reason a golden file cannot show."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from golden_files import LINK
from hansa.kube.objects import Object
from hansa.model import references
from hansa.model.pair import Link
from hansa.model.translation.common import names
from translating import a_pod, desired

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HERE = {"key": "clusterID", "operator": "In", "values": ["r1"]}
ELSEWHERE = {"key": "clusterID", "operator": "In", "values": ["r2"]}
FAST = {"key": "disk", "operator": "In", "values": ["fast"]}
BROKEN = {"key": "clusterID", "operator": "Near", "values": ["r1"]}
NAMED = [{"key": "metadata.name", "operator": "In", "values": ["vn1"]}]


def link(**settings: Any) -> Link:
    return replace(LINK, settings=replace(LINK.settings, **settings))


def terms(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ([{"matchExpressions": [HERE]}], None),
        ([{"matchExpressions": [HERE, FAST]}], [{"matchExpressions": [FAST]}]),
        ([{"matchExpressions": [HERE]}, {"matchExpressions": [FAST]}], None),
        ([{"matchExpressions": [ELSEWHERE]}, {"matchExpressions": [FAST]}], [{"matchExpressions": [FAST]}]),
        ([{"matchFields": NAMED}], None),
        ([{"matchFields": NAMED, "matchExpressions": [FAST]}], [{"matchExpressions": [FAST]}]),
        ([{"matchExpressions": [BROKEN]}, {"matchExpressions": [FAST]}], [{"matchExpressions": [FAST]}]),
        ([{"matchExpressions": [ELSEWHERE]}], None),
        ([{}, {"matchExpressions": [FAST]}], [{"matchExpressions": [FAST]}]),
    ],
)
def test_terms_match_the_virtual_node_or_are_left_to_lower_nodes(above: list[Any], below: list[Any] | None) -> None:
    spec = desired(a_pod(terms(*above))).spec
    assert spec.get("affinity") == (None if below is None else terms(*below)["affinity"])


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", '{"affinity":"none"}', '{"nodeSelector":{"a":1}}'])
def test_an_annotation_that_cannot_be_read_is_as_none(text: str) -> None:
    spec = {"nodeSelector": {"disk": "fast"}}
    assert desired(a_pod(spec, annotations={"clusterSelector": text})).spec["nodeSelector"] == {"disk": "fast"}


def test_parked_constraints_replace_those_of_the_spec_even_by_none() -> None:
    spec = {"nodeSelector": {"clusterID": "r1"}, "tolerations": [{"operator": "Exists"}]} | terms(
        {"matchExpressions": [FAST]}
    )
    below = desired(a_pod(spec, annotations={"clusterSelector": "{}"})).spec
    assert not {"nodeSelector", "tolerations", "affinity"} & below.keys()


def test_only_known_fields_are_taken_out_of_the_annotation() -> None:
    parked = '{"hostNetwork":true,"containers":[],"nodeSelector":{"disk":"fast"}}'
    below = desired(a_pod(annotations={"clusterSelector": parked})).spec
    assert below["nodeSelector"] == {"disk": "fast"}
    assert "hostNetwork" not in below
    assert below["containers"]


def test_label_keys_that_are_not_in_the_selector_yet_stay() -> None:
    selector = {"matchExpressions": [{"key": "version", "operator": "In", "values": ["1"]}]}
    spread = {"maxSkew": 1, "matchLabelKeys": ["version", "colour"], "labelSelector": selector}
    [below] = desired(a_pod({"topologySpreadConstraints": [spread]})).spec["topologySpreadConstraints"]
    assert below == spread | {"matchLabelKeys": ["colour"]}


def test_a_class_and_a_scheduler_are_kept_only_by_setting() -> None:
    pod = a_pod({"priorityClassName": "high", "priority": 7, "schedulerName": "volcano"})
    assert not {"priorityClassName", "priority", "schedulerName"} & desired(pod).spec.keys()
    below = desired(pod, link(keeps_priority_class=True, scheduler="mine")).spec
    assert (below["priorityClassName"], below["schedulerName"], "priority" in below) == ("high", "mine", False)


def test_without_an_api_server_address_pods_get_no_environment_variable() -> None:
    assert "env" not in desired(a_pod(), link(api_host="")).spec["containers"][0]


def test_the_secret_of_a_token_is_the_one_that_its_reference_names() -> None:
    sources = [{"serviceAccountToken": {"path": "t"}}, {"serviceAccountToken": {"path": "v", "audience": "vault"}}]
    pod = a_pod({"volumes": [{"name": "v", "projected": {"sources": sources}}], "serviceAccountName": "robot"})
    below = desired(pod).spec["volumes"][0]["projected"]["sources"]
    asked = references.of_pod(pod).tokens
    assert [one["secret"]["name"] for one in below] == [
        names.token_secret(one, upper_id=LINK.upper_id) for one in asked
    ]
    assert len({one["secret"]["name"] for one in below}) == 2


def test_pods_of_two_upper_clusters_share_no_secret() -> None:
    [token] = references.of_pod(with_token()).tokens
    assert names.token_secret(token, upper_id="a") != names.token_secret(token, upper_id="b")


def test_the_upper_pod_is_never_changed_by_a_step() -> None:
    pod = with_token()
    before = pod.to_json()
    desired(pod)
    assert pod.to_json() == before
    assert msgspec.json.decode(before)


def with_token() -> Object:
    return a_pod({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]})


def test_a_toleration_added_after_the_others_were_parked_is_synced() -> None:
    early, late = ({"key": key, "operator": "Exists"} for key in ("early", "late"))
    trouble = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    pod = a_pod(
        {"tolerations": [early, trouble, late]}, annotations={"clusterSelector": json.dumps({"tolerations": [early]})}
    )
    assert desired(pod).spec["tolerations"] == [early, late]
