"""The Node of a lower cluster, as a function of the state."""

import dataclasses
import datetime

import pytest

from hansa.kube.language import tolerations
from hansa.kube.objects import Object
from hansa.model import capacity, keys
from hansa.nodes import lower_state, manifest
from hansa.nodes.lower_state import LowerState, Problem
from hansa.nodes.settings import NodeSettings
from lower_things import node

NOW = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(hours=1)
PROVIDER = tolerations.Taint(key=keys.PROVIDER_TAINT, value="k8s", effect="NoSchedule")
SETTINGS = NodeSettings("vn1", "hamburg", taint=PROVIDER, internal_ip="10.0.0.7", port=10250)
AWAY = Problem("LowerClusterUnreachable", "no answer in 3 s")


def seen(*nodes, settings=SETTINGS, trouble=None, version="v1.35.8"):
    """The state about a lower cluster with these nodes."""
    cluster = capacity.Capacity(lambda _: False, label_keys=lower_state.LABELS)
    for one in nodes:
        cluster.node(one.name, one)
    return LowerState(settings, cluster.totals(), lower_state.summarize(cluster.node_infos()), version, trouble)


def conditions(one):
    return {c["type"]: c for c in one.status["conditions"]}


FACTS = seen(node("n1"), node("n2"))
MADE = manifest.manifest(FACTS, NOW).with_metadata(uid="1", resource_version="7")


def test_a_virtual_node_looks_as_users_of_virtual_kubelet_expect():
    assert MADE.labels == {
        "type": "virtual-kubelet",
        "kubernetes.io/role": "agent",
        "kubernetes.io/hostname": "vn1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "hansa.dev/virtual-node": "true",
    }
    assert MADE.spec == {"taints": [{"key": "virtual-kubelet.io/provider", "value": "k8s", "effect": "NoSchedule"}]}
    status = MADE.status
    assert status["capacity"] == {"cpu": "16", "memory": "32Gi", "pods": "220"} == status["allocatable"]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.35.8"
    assert status["addresses"] == [
        {"type": "InternalIP", "address": "10.0.0.7"},
        {"type": "Hostname", "address": "10.0.0.7"},
    ]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
    assert {kind: one["status"] for kind, one in conditions(MADE).items()} == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "NetworkUnavailable": "False",
    }


def test_nothing_is_written_while_nothing_differs():
    assert not manifest.changes(MADE, FACTS, LATER)


def test_a_heartbeat_renews_the_conditions_and_nothing_else():
    changes = manifest.changes(MADE, FACTS, LATER, is_report_due=True)
    assert not changes.node
    assert list(changes.status["status"]) == ["conditions"]
    ready = changes.status["status"]["conditions"][0]
    assert ready["lastHeartbeatTime"] == "2026-01-01T13:00:00Z"
    assert ready["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_only_the_amounts_that_changed_are_written():
    more = seen(node("n1"), node("n2"), node("n3", cpu="1", pods="0", gpu="2"))
    patch = manifest.changes(MADE, more, LATER).status["status"]
    assert patch["capacity"] == {"cpu": "17", "example.com/gpu": "2"} == patch["allocatable"]
    assert "nodeInfo" not in patch
    assert "addresses" not in patch


def test_a_resource_that_no_node_offers_any_more_is_removed():
    have = manifest.manifest(seen(node("n1", cpu="1", gpu="2")), NOW)
    patch = manifest.changes(have, seen(node("n1", cpu="1")), LATER).status["status"]
    assert patch["capacity"] == {"example.com/gpu": None}


def test_another_spelling_of_the_same_amount_is_no_change():
    status = MADE.status
    status["capacity"] = {"cpu": "16000m", "memory": "32768Mi", "pods": "220"}
    assert not manifest.changes(MADE.with_fields(status=status), FACTS, LATER)


def test_a_problem_changes_only_the_ready_condition():
    away = seen(trouble=AWAY, settings=dataclasses.replace(SETTINGS, port=1, labels={"a": "b"}), version="")
    changes = manifest.changes(MADE, away, LATER)
    assert not changes.node
    assert changes.status == {
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "LowerClusterUnreachable",
                    "message": "no answer in 3 s",
                    "lastHeartbeatTime": "2026-01-01T13:00:00Z",
                    "lastTransitionTime": "2026-01-01T13:00:00Z",
                }
            ]
        }
    }


def test_a_node_created_during_a_problem_offers_nothing_and_states_the_reason():
    made = manifest.manifest(seen(trouble=AWAY, version=""), NOW)
    assert made.status["capacity"]["cpu"] == "0"
    assert conditions(made)["Ready"]["message"] == "no answer in 3 s"


def test_conditions_that_the_upper_cluster_set_to_unknown_are_restored():
    status = MADE.status
    for one in status["conditions"]:
        one |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
    patch = manifest.changes(MADE.with_fields(status=status), FACTS, LATER).status["status"]
    assert {one["status"] for one in patch["conditions"]} == {"True", "False"}
    assert {one["lastTransitionTime"] for one in patch["conditions"]} == {"2026-01-01T13:00:00Z"}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], {}),
        ([{"region": "eu", "zone": "a"}, {"region": "eu", "zone": "b"}], {"region": "eu"}),
        ([{"region": "eu", "zone": "a"}, {"region": "eu", "zone": "a"}], {"region": "eu", "zone": "a"}),
        ([{"region": "eu"}, {}], {}),
    ],
)
def test_region_and_zone_are_labelled_when_all_lower_nodes_agree(nodes, expected):
    def keyed(places):
        return {f"topology.kubernetes.io/{key}": value for key, value in places.items()}

    lower = [node(f"n{number}", labels=keyed(places)) for number, places in enumerate(nodes)]
    labels = manifest.manifest(seen(*lower), NOW).labels
    assert {key: value for key, value in labels.items() if key.startswith("topology")} == keyed(expected)


def test_an_outdated_zone_label_is_removed_and_labels_of_users_stay():
    zone = "topology.kubernetes.io/zone"
    have = manifest.manifest(seen(node(labels={zone: "a"})), NOW)
    have = have.with_metadata(labels={**have.labels, "team": "blue"}, resource_version="7")
    patch = manifest.changes(have, seen(node("n1", labels={zone: "a"}), node("n2")), LATER).node
    assert patch["metadata"]["labels"] == {zone: None}
    assert "spec" not in patch


def test_the_platform_is_that_of_most_lower_nodes():
    arms = [node(f"arm{n}", labels={"kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux"}) for n in range(2)]
    made = manifest.manifest(seen(*arms, node("n1", labels={"kubernetes.io/arch": "amd64"})), NOW)
    assert made.labels["kubernetes.io/arch"] == "arm64" == made.labels["beta.kubernetes.io/arch"]
    assert made.status["nodeInfo"]["architecture"] == "arm64"


def test_a_pressure_condition_is_true_when_all_ready_nodes_have_it():
    pressed = node("n1", conditions=["MemoryPressure"])
    assert conditions(manifest.manifest(seen(pressed, node("n2")), NOW))["MemoryPressure"]["status"] == "False"
    away = node("n2", ready="False")
    assert conditions(manifest.manifest(seen(pressed, away), NOW))["MemoryPressure"]["status"] == "True"


def patched(have, patch):
    """The node after a patch of its metadata and taints."""
    labels = {**have.labels, **patch["metadata"].get("labels", {})}
    annotations = {**have.annotations, **patch["metadata"].get("annotations", {})}
    kept = {k: v for k, v in annotations.items() if v is not None}
    fields = {"spec": patch["spec"]} if "spec" in patch else {}
    return have.with_metadata(labels=labels, annotations=kept).with_fields(**fields)


def test_a_taint_is_replaced_by_another_or_none_and_those_of_others_stay():
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    have = MADE.with_fields(spec={"taints": [*MADE.spec["taints"], cordon]})
    other = tolerations.Taint(key="mine", value="", effect="NoExecute")
    patch = manifest.changes(have, seen(node("n1"), node("n2"), settings=with_taint(other)), LATER).node
    assert patch["spec"]["taints"] == [cordon, {"key": "mine", "effect": "NoExecute"}]
    assert patch["metadata"]["resourceVersion"] == "7"
    have = patched(have, patch)
    none = seen(node("n1"), node("n2"), settings=with_taint(None))
    patch = manifest.changes(have, none, LATER).node
    assert patch["spec"]["taints"] == [cordon]
    assert not manifest.changes(patched(have, patch), none, LATER)


def test_a_taint_that_a_user_removed_is_not_restored():
    assert not manifest.changes(MADE.with_fields(spec={}), FACTS, LATER)


def with_taint(taint):
    return dataclasses.replace(SETTINGS, taint=taint)


def test_a_node_is_ours_by_our_mark_and_the_cluster_that_it_stands_for():
    assert manifest.is_ours(MADE, SETTINGS)
    assert not manifest.is_ours(MADE, dataclasses.replace(SETTINGS, lower="lubeck"))
    kubelets = Object.of({"kind": "Node", "metadata": {"name": "vn1", "labels": {"type": "virtual-kubelet"}}})
    assert not manifest.is_ours(kubelets, SETTINGS)
