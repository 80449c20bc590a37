"""Objects of the super cluster that are synced up: nodes, their leases, volumes, classes."""

import datetime
from dataclasses import replace
from typing import Any

import pytest

import golden_files
from golden_files import Case
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.model.pair import Key, Link
from hansa.model.placement import PlacementContext
from hansa.model.translation.tenant import classes, nodes, tenant_settings
from hansa.model.translation.tenant.nodes import AgentAddress, VirtualNodeSettings
from hansa.modes import virtualcluster, virtualcluster_settings
from surroundings import Surroundings
from tenants import KEY, LINK, an_object

SHARED, UP = golden_files.SHARED, golden_files.SUPER
OTHER = replace(UP, lower="another", settings=replace(tenant_settings.of(UP), key="another", name="other"))
TENANTS = PlacementContext(frozenset({KEY, "another"}), {}, lambda *_: frozenset({KEY}))
NODE = Case(golden_files.ROOT / "virtualcluster/node/plain")


def patches(rule_of: Resource, have: Object, source: Object) -> list[Any]:
    rule = SHARED.rules[rule_of]
    return list(rule.down_patches(have, SHARED.desired(source, Key("super", rule_of, *source.key), UP)))


def copy_of_tenants(obj: Object) -> Object:
    marked = stamp.put(obj, stamp.Origin(LINK.upper_id, "u1", "shop", obj.name))
    return marked.with_metadata(annotations={**marked.annotations, keys.TENANT_CLUSTER: KEY})


def a_super_pod(owner: str = "ReplicaSet", **spec: Any) -> Object:
    pod = copy_of_tenants(an_object("Pod", "web", f"{KEY}-shop", spec=spec))
    owners = f'[{{"apiVersion":"apps/v1","kind":"{owner}","name":"web","uid":"1"}}]'
    return pod.with_metadata(annotations={**pod.annotations, keys.TENANT_OWNERS: owners})


def test_a_node_and_its_lease_are_needed_where_a_pod_of_the_tenant_is_on_it() -> None:
    rule = SHARED.rules[resources.PODS]
    pod = a_super_pod(nodeName="n1")
    key = Key("super", resources.PODS, *pod.key)
    needed = [(one.resource, one.namespace, one.name) for one in rule.references(pod)]
    assert needed == [(resources.NODES, "", "n1"), (resources.LEASES, "kube-node-lease", "n1")]
    assert rule.needs(pod, key, TENANTS) == {KEY: 2}
    assert rule.placed(pod, key, TENANTS) == {}, "the pod itself is above already"
    assert list(rule.references(a_super_pod())) == []


def test_pods_of_a_daemon_set_hold_no_node() -> None:
    rule = SHARED.rules[resources.PODS]
    assert list(rule.references(a_super_pod("DaemonSet", nodeName="n1"))) == []


def test_what_is_not_a_copy_of_ours_concerns_no_tenant() -> None:
    rule, pod = SHARED.rules[resources.PODS], a_super_pod(nodeName="n1")
    key = Key("super", resources.PODS, *pod.key)
    assert rule.needs(pod.with_metadata(labels={}), key, TENANTS) == {}
    assert rule.needs(pod, key, replace(TENANTS, lowers=frozenset({"another"}))) == {}


def test_a_node_shows_labels_and_taints_by_setting_and_no_pod_is_scheduled_to_it() -> None:
    look = VirtualNodeSettings(labels=frozenset({"rack"}), taints=frozenset({"dedicated"}), port=7, cluster_id="r1")
    mode = virtualcluster.shared(virtualcluster_settings.VirtualClusterSettings(nodes=look))
    node = mode.desired(NODE.source, Key("super", resources.NODES, "", "worker-3"), UP)
    assert (node.labels["rack"], node.labels[keys.SUPER_CLUSTER_ID]) == ("r7", "r1")
    assert node.spec["unschedulable"] is True
    assert [one["key"] for one in node.spec["taints"]] == ["node.kubernetes.io/unschedulable", "dedicated"]
    assert node.status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 7}}
    mine = [{"key": "mine", "effect": "NoSchedule"}]
    bare = NODE.source.with_fields(spec={})
    wanted = mode.desired(bare, Key("super", resources.NODES, "", "worker-3"), UP)
    there = node.with_fields(spec=node.spec | {"taints": node.spec["taints"] + mine})
    [part] = mode.rules[resources.NODES].down_patches(there, wanted)
    assert [one["key"] for one in part.patch["spec"]["taints"]] == ["node.kubernetes.io/unschedulable", "mine"]


def test_a_vn_agent_for_all_nodes_is_the_first_internal_address() -> None:
    look = VirtualNodeSettings(agents={"r1": AgentAddress("10.9.9.9", 7)}, cluster_id="r1")
    mode = virtualcluster.shared(virtualcluster_settings.VirtualClusterSettings(nodes=look))
    status = mode.desired(NODE.source, Key("super", resources.NODES, "", "worker-3"), UP).status
    own = [one for one in NODE.source.status["addresses"] if one["type"] in look.addresses]
    assert status["addresses"] == [{"type": "InternalIP", "address": "10.9.9.9"}, *own]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 7}}


def condition(kind: str, status: str, heartbeat: str = "2026-05-01T10:00:00Z") -> dict[str, str]:
    return {"type": kind, "status": status, "lastHeartbeatTime": heartbeat}


@pytest.mark.parametrize(("status", "stays"), [("True", False), ("False", True), ("Unknown", True)])
def test_a_node_that_is_ready_loses_the_taint_that_every_new_node_is_given(status: str, stays: bool) -> None:
    """Otherwise no DaemonSet would run there; controllers of a tenant may add taints of their own."""
    new = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    others = [new | {"effect": "NoExecute"}, {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
    source = NODE.source.with_fields(status=NODE.source.status | {"conditions": [condition("Ready", status)]})
    node = NODE.desired(source)
    there = node.with_fields(spec=node.spec | {"taints": [*node.spec["taints"], new, *others]})
    taints = [part.patch["spec"]["taints"] for part in patches(resources.NODES, there, source)]
    assert taints == ([] if stays else [[*node.spec["taints"], *others]])


def test_a_node_without_addresses_is_written_once() -> None:
    source = NODE.source.with_fields(status=NODE.source.status | {"addresses": []})
    node = NODE.desired(source)
    assert "addresses" not in node.status
    assert patches(resources.NODES, node, source) == []


def test_conditions_follow_the_super_node_but_heartbeats_alone_are_not_worth_a_write() -> None:
    node = NODE.desired(NODE.source)
    before, beat, away = (
        NODE.source.with_fields(status=NODE.source.status | {"conditions": [one]})
        for one in (
            condition("Ready", "True"),
            condition("Ready", "True", "2026-05-01T10:05:00Z"),
            condition("Ready", "False"),
        )
    )
    own = condition("example.com/mine", "True")
    there = node.with_fields(status=node.status | {"conditions": [condition("Ready", "True"), own]})
    assert patches(resources.NODES, there, before) == []
    assert patches(resources.NODES, there, beat) == []
    [part] = patches(resources.NODES, there, away)
    assert (part.subresource, part.patch["status"]) == ("status", {"conditions": [condition("Ready", "False"), own]})


def test_a_change_of_a_super_nodes_status_counts_as_one_of_its_content() -> None:
    rule = SHARED.rules[resources.NODES]
    assert rule.status_down is not None
    assert rule.status_down(NODE.source) == NODE.source.status


@pytest.mark.parametrize(
    ("seconds", "is_patched"), [(0, False), (10, False), (59, False), (60, True), (3600, True), (-60, False)]
)
def test_a_lease_is_renewed_when_the_last_renewal_is_a_minute_old(seconds: int, is_patched: bool) -> None:
    case = Case(golden_files.ROOT / "virtualcluster/lease/of-a-node")
    copy = case.desired(case.source)
    then = datetime.datetime.fromisoformat(copy.spec["renewTime"]) + datetime.timedelta(seconds=seconds)
    renewed = case.source.with_fields(spec=case.source.spec | {"renewTime": then.isoformat()})
    parts = patches(resources.LEASES, copy, renewed)
    assert bool(parts) is is_patched
    if parts:
        assert parts[0].patch["spec"] == {"renewTime": then.isoformat(), "leaseDurationSeconds": nodes.LEASE_SECONDS}


def test_a_volume_is_for_the_tenants_claim() -> None:
    rule = SHARED.rules[resources.PERSISTENT_VOLUME_CLAIMS]
    claim = copy_of_tenants(an_object("PersistentVolumeClaim", "data", f"{KEY}-shop", spec={"volumeName": "v1"}))
    claim = claim.with_fields(status={"phase": "Bound"})
    assert [(one.resource, one.name) for one in rule.references(claim)] == [(resources.PERSISTENT_VOLUMES, "v1")]
    assert rule.needs(claim, Key("super", resources.PERSISTENT_VOLUME_CLAIMS, *claim.key), TENANTS) == {KEY: 2}
    bound = {"namespace": claim.namespace, "name": "data", "uid": "below", "resourceVersion": "7"}
    volume = an_object("PersistentVolume", "v1", spec={"claimRef": bound, "persistentVolumeReclaimPolicy": "Delete"})
    link = replace(UP, lookups=Surroundings([claim]))
    spec = SHARED.desired(volume, Key("super", resources.PERSISTENT_VOLUMES, "", "v1"), link).spec
    assert spec["claimRef"] == {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "shop",
        "name": "data",
        "uid": "u1",
    }
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"


def test_a_claim_that_only_names_a_volume_shows_nothing_of_it() -> None:
    rule, key = (
        SHARED.rules[resources.PERSISTENT_VOLUME_CLAIMS],
        Key("super", resources.PERSISTENT_VOLUME_CLAIMS, "", ""),
    )
    pending = copy_of_tenants(an_object("PersistentVolumeClaim", "data", f"{KEY}-shop", spec={"volumeName": "v1"}))
    assert rule.needs(pending, key, TENANTS) == rule.needs(pending.with_fields(status={}), key, TENANTS) == {}


def test_a_volume_is_shown_only_if_it_is_bound_to_a_copy_of_that_tenant() -> None:
    check = SHARED.rules[resources.PERSISTENT_VOLUMES].check
    claim = copy_of_tenants(an_object("PersistentVolumeClaim", "data", f"{KEY}-shop"))
    bound = {"namespace": claim.namespace, "name": "data", "uid": claim.uid}
    link = replace(UP, lookups=Surroundings([claim]))

    def is_shown(ref: dict[str, str], to: Link = link) -> bool:
        return check(an_object("PersistentVolume", "v1", spec={"claimRef": ref}), to) == ""

    assert is_shown(bound)
    assert not is_shown(bound | {"uid": "of-a-former-claim"})
    assert not is_shown({})
    assert not is_shown(bound, replace(OTHER, lookups=Surroundings([claim])))
    foreign = replace(UP, lookups=Surroundings([claim.with_metadata(labels={})]))
    assert not is_shown(bound, foreign)


OFFERED = (*classes.CLASSES, resources.CUSTOM_RESOURCE_DEFINITIONS)


@pytest.mark.parametrize("resource", OFFERED, ids=str)
def test_what_is_public_is_with_every_tenant(resource: Resource) -> None:
    rule, key = SHARED.rules[resource], Key("super", resource, "", "one")
    tenants = replace(TENANTS, links={KEY: UP, "another": OTHER})
    public = an_object(resource.kind, "one", labels={keys.SUPER_PUBLIC: "true"})
    assert rule.placed(public, key, tenants) == {KEY: 2, "another": 2}
    assert rule.placed(an_object(resource.kind, "one"), key, tenants) == {}


@pytest.mark.parametrize("resource", classes.CLASSES, ids=str)
def test_a_class_for_some_tenants_is_with_these_and_does_not_name_the_others(resource: Resource) -> None:
    rule, key = SHARED.rules[resource], Key("super", resource, "", "one")
    some = an_object(resource.kind, "one").with_metadata(annotations={keys.OFFERED_TO: "a/b,default/other"})
    assert rule.placed(some, key, replace(TENANTS, links={KEY: UP, "another": OTHER})) == {"another": 2}
    assert keys.OFFERED_TO not in SHARED.desired(some, key, OTHER).annotations


def test_classes_do_not_show_what_only_the_super_cluster_uses() -> None:
    runtime = an_object("RuntimeClass", "kata", handler="kata", scheduling={"nodeSelector": {"kata": "yes"}})
    shown = SHARED.desired(runtime, Key("super", resources.RUNTIME_CLASSES, "", "kata"), UP)
    assert (shown.get("handler"), shown.get("scheduling")) == ("kata", None)
    ingress = an_object("IngressClass", "web", spec={"controller": "example.com/web", "parameters": {"name": "x"}})
    shown = SHARED.desired(ingress, Key("super", resources.INGRESS_CLASSES, "", "web"), UP)
    assert shown.spec == {"controller": "example.com/web"}
