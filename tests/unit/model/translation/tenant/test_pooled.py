"""A tenant's objects in a pool: their placement, and merged statuses of several super clusters."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, tenant_names
from hansa.model.pair import Grade, Key, Unknown
from hansa.model.placement import Intents, PlacementContext
from hansa.model.translation.tenant import nodes, service_reach
from hansa.modes import virtualcluster
from hansa.modes.virtualcluster_settings import PoolSettings, VirtualClusterSettings
from tenants import a_link, a_pod, a_service, an_object

RULES = virtualcluster.mode(VirtualClusterSettings(pool=PoolSettings())).rules
JOINED = virtualcluster.mode(VirtualClusterSettings(pool=PoolSettings(are_networks_joined=True))).rules
SHARED = virtualcluster.shared(VirtualClusterSettings(pool=PoolSettings()))
PLACEMENTS, GIVEN = "scheduler.tenancy.x-k8s.io/placements", "scheduler.tenancy.x-k8s.io/superCluster"
LATER = ("scheduler.virtualcluster.io/placements", "scheduler.virtualcluster.io/superCluster")
HERE = {"clusterIP": "10.32.0.9"}


def placed(obj: Object, resource: Resource, *, homes: Intents | None = None, users: Iterable[str] = ()) -> Any:
    """Where an object is; `homes` are its namespace's. Where it is only kept is in brackets."""
    chosen = dict.fromkeys(("r1", "r2"), Grade.CHOSEN) if homes is None else homes
    facts = PlacementContext(frozenset(("r1", "r2")), {}, lambda *_: frozenset(users), lambda _: chosen)
    return shown(RULES[resource].placement(obj, Key("blue", resource, *obj.key), facts))


def shown(found: Intents) -> Any:
    if isinstance(found, Unknown):
        return found
    return sorted(f"({name})" if grade is Grade.KEPT else name for name, grade in found.items())


def namespace_placed(
    decided: Iterable[str], *, name: str = "shop", users: Iterable[str] = (), others: Iterable[str] = ()
) -> Any:
    """Where a namespace is, by the scheduler's decisions on it and on other namespaces, and by its users."""
    key, obj = Key("blue", resources.NAMESPACES, "", name), an_object("Namespace", name)
    facts = PlacementContext(
        frozenset(),
        {},
        lambda *_: frozenset(users),
        decided=lambda _: frozenset(decided),
        all_decided=lambda: frozenset((*decided, *others)),
    )
    return shown(RULES[resources.NAMESPACES].placement(obj, key, facts))


def a_namespace(text: str = "", key: str = PLACEMENTS) -> Object:
    words = {key: text} if text else {}
    return Object.of({"kind": "Namespace", "metadata": {"name": "shop", "annotations": words}})


def test_a_namespace_is_where_that_is_decided_and_kept_where_its_pods_are() -> None:
    assert namespace_placed([]) == []
    assert namespace_placed(["r1", "r2"]) == ["r1", "r2"]
    assert namespace_placed(["r1"], users=["r2"]) == ["(r2)", "r1"]  # its pods have to leave first


def test_the_namespaces_that_all_pods_use_are_where_any_is_placed_and_pods_alone_do_not_bring_them() -> None:
    for name in ("default", "kube-system"):
        assert namespace_placed([], name=name, users=["r1", "r2"], others=["r1"]) == ["(r2)", "r1"]


def test_nothing_is_concluded_from_annotations_without_a_decision() -> None:
    unseen = Unknown("not decided")
    facts = PlacementContext(frozenset(), {}, lambda *_: frozenset(), decided=lambda _: unseen)
    key, obj = Key("blue", resources.NAMESPACES, "", "shop"), a_namespace('{"r1":1}')
    assert RULES[resources.NAMESPACES].placement(obj, key, facts) is unseen


def test_a_pod_is_in_the_cluster_that_it_was_given_if_its_namespace_is_there_and_kept_where_it_was_before() -> None:
    only = {"r1": Grade.CHOSEN}
    assert placed(a_pod(), resources.PODS) == []
    for key in (GIVEN, LATER[1]):
        assert placed(a_pod(annotations={key: "r2"}), resources.PODS) == ["r2"]
    assert placed(a_pod(annotations={GIVEN: "r2"}), resources.PODS, homes=only) == []
    assert placed(a_pod({"nodeName": "r2.n1"}, annotations={GIVEN: "r2"}), resources.PODS, homes=only) == ["(r2)"]
    annotations = {GIVEN: "r2", "hansa.dev/lower-uid": "l"}
    assert placed(a_pod(annotations=annotations), resources.PODS, homes=only) == ["(r2)"]
    leaving = {"r1": Grade.CHOSEN, "r2": Grade.KEPT}
    assert placed(a_pod(annotations={GIVEN: "r2"}), resources.PODS, homes=leaving) == ["(r2)"]
    held = a_pod({"schedulingGates": [{"name": "later"}]}, annotations={GIVEN: "r1"})
    assert placed(held, resources.PODS) == []
    unseen = Unknown("placements cannot be read")
    assert placed(a_pod(annotations={GIVEN: "r1"}), resources.PODS, homes=unseen) is unseen


def test_a_pod_that_was_moved_waits_for_its_former_cluster_which_takes_its_mark_off() -> None:
    marks = {f"tenancy.x-k8s.io/moved-from.{name}": "" for name in ("r1", "r2")}
    moved = a_pod(annotations={GIVEN: "r2", **marks})
    facts = PlacementContext(frozenset(("r1", "r2")), {}, lambda *_: frozenset(), lambda _: {"r2": Grade.CHOSEN})
    rule, key = RULES[resources.PODS], Key("blue", resources.PODS, *moved.key)
    assert rule.placement(moved, key, facts) == {"r1": Grade.PAST, "r2": Grade.CHOSEN}
    nowhere = replace(facts, of_namespace=lambda _: {})
    assert rule.placement(moved, key, nowhere) == {"r1": Grade.PAST, "r2": Grade.PAST}
    [part] = rule.on_moved(moved, "r1")
    assert part.patch["metadata"]["annotations"] == {"tenancy.x-k8s.io/moved-from.r1": None}
    below = virtualcluster.mode(VirtualClusterSettings(pool=PoolSettings())).desired(moved, key, a_link())
    assert not marks.keys() & below.annotations.keys(), "the mark stays above"


def test_a_pod_references_the_namespaces_that_it_requires() -> None:
    needed = {one.name for one in RULES[resources.PODS].references(a_pod()) if one.resource == resources.NAMESPACES}
    assert needed == {"shop", "default", "kube-system"}


def test_the_systems_namespaces_are_wherever_others_are_placed_and_wait_for_each_other_in_no_circle() -> None:
    def needed(name: str) -> list[str]:
        obj = Object.of({"kind": "Namespace", "metadata": {"name": name}})
        return [one.name for one in RULES[resources.NAMESPACES].references(obj)]

    assert [needed(name) for name in ("shop", "default", "kube-system")] == [
        ["default", "kube-system"],
        ["kube-system"],
        [],
    ]
    facts = PlacementContext(frozenset(), {}, lambda *_: frozenset({"r2"}), decided=lambda _: frozenset({"r1"}))
    key = Key("blue", resources.NAMESPACES, "", "shop")
    assert RULES[resources.NAMESPACES].needs(a_namespace('{"r1":1}'), key, facts) == {"r1": Grade.CHOSEN}


def test_objects_are_placed_with_their_namespace_but_claims_with_their_pods() -> None:
    for kind in (resources.CONFIG_MAPS, resources.SECRETS, resources.SERVICE_ACCOUNTS, resources.SERVICES):
        assert RULES[kind].follows_namespace
        assert placed(an_object(kind.kind, "x", "shop"), kind, users=["r1"]) == ["r1", "r2"]
    claim = an_object("PersistentVolumeClaim", "data", "shop")
    assert placed(claim, resources.PERSISTENT_VOLUME_CLAIMS, users=["r2"]) == ["r2"]
    assert RULES[resources.PERSISTENT_VOLUME_CLAIMS].lifecycle.outlives_users


def test_endpoints_of_all_clusters_are_everywhere_only_if_their_networks_are_joined() -> None:
    labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    computed = an_object("EndpointSlice", "web-x", "shop", labels=labels)
    key, facts = (
        Key("blue", resources.ENDPOINT_SLICES, "shop", "web-x"),
        PlacementContext(frozenset(), {}, lambda *_: frozenset()),
    )
    facts = replace(facts, of_namespace=lambda _: {"r1": Grade.CHOSEN})
    assert placed(computed, resources.ENDPOINT_SLICES) == []
    assert placed(an_object("EndpointSlice", "own", "shop"), resources.ENDPOINT_SLICES) == ["r1", "r2"]
    assert JOINED[resources.ENDPOINT_SLICES].placement(computed, key, facts) == {"r1": Grade.CHOSEN}
    service = a_service("web", selector={"app": "web"}, ports=[{"port": 80}], **HERE)
    for rules, selected in ((RULES, {"app": "web"}), (JOINED, None)):
        lower = service
        for step in rules[resources.SERVICES].down:
            lower = step(lower, a_link())
        assert lower.spec.get("selector") == selected


def synced_up(upper: Object, lower: Object, cluster: str, *, homes: str = '{"r1":1,"r2":1}') -> Object:
    """The upper Service after the status of a super cluster is synced up."""
    link = a_link([a_namespace(homes)], super_cluster=cluster)
    whole = upper.to_dict()
    for part in RULES[resources.SERVICES].up_patches(upper, lower, link):
        for key, value in part.patch.get("metadata", {}).get("annotations", {}).items():
            notes = whole["metadata"].setdefault("annotations", {})
            notes.pop(key, None) if value is None else notes.update({key: value})
        whole |= {"status": part.patch["status"]} if "status" in part.patch else {}
    return Object.of(whole)


def balancer(*addresses: str) -> Object:
    ingress = [{"ip": address} for address in addresses]
    return a_service("web").with_fields(status={"loadBalancer": {"ingress": ingress} if ingress else {}})


def addresses(service: Object) -> list[str]:
    return [one["ip"] for one in service.status["loadBalancer"].get("ingress") or ()]


def test_load_balancer_addresses_of_several_clusters_are_merged_without_conflict() -> None:
    service = synced_up(a_service("web"), balancer("192.0.2.2"), "r2")
    service = synced_up(service, balancer("192.0.2.1"), "r1")
    assert addresses(service) == ["192.0.2.1", "192.0.2.2"]
    for cluster, lower in (("r1", balancer("192.0.2.1")), ("r2", balancer("192.0.2.2"))):
        assert synced_up(service, lower, cluster).to_dict() == service.to_dict()
    gone = synced_up(service, balancer("192.0.2.1"), "r1", homes='{"r1":1}')
    assert addresses(gone) == ["192.0.2.1"]
    assert addresses(synced_up(gone, balancer(), "r1")) == []


def test_a_claim_is_synced_up_from_the_cluster_that_has_its_volume() -> None:
    capacity = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    upper = an_object("PersistentVolumeClaim", "data", "shop", spec={"volumeName": "pv1"}, status={"phase": "Bound"})
    up_patches = RULES[resources.PERSISTENT_VOLUME_CLAIMS].up_patches
    for volume, parts in (("pv1", 1), ("pv2", 0), (None, 0)):
        lower = upper.with_fields(spec={"volumeName": volume} if volume else {}, status=capacity)
        assert len(list(up_patches(upper, lower, a_link()))) == parts


def test_nodes_of_one_name_in_two_super_clusters_have_two_upper_names() -> None:
    assert tenant_names.pool_node("r1", "n1.example.com") == "r1.n1.example.com"
    long = tenant_names.pool_node("r1", "n" * 253)
    assert len(long) == 253
    assert long != tenant_names.pool_node("r1", "n" * 252)
    link = a_link(super_cluster="r1")
    for kind, namespace, name in (
        (resources.NODES, "", "r1.n1"),
        (resources.LEASES, "kube-node-lease", "r1.n1"),
        (resources.STORAGE_CLASSES, "", "n1"),
    ):
        assert SHARED.lower_name(Key("r1", kind, namespace, "n1"), "u", link).name == name
    assert nodes.super_node_name("r1.n1", link) == "n1"
    assert nodes.super_node_name("n1", a_link()) == nodes.tenant_node_name("n1", a_link()) == "n1"


@pytest.mark.parametrize(
    ("homes", "pods", "is_whole", "words"),
    [
        ({"r1"}, ["r1"], True, "all endpoints are in super cluster r1"),
        ({"r1", "r2"}, ["r1", "r1"], False, "(r1: 2 pods, r2: no pods)"),
        ({"r1"}, ["r1", "r2"], False, "(r1: 1 pod, r2: 1 pod)"),
        (set(), [], True, "not placed in any super cluster"),
    ],
)
def test_a_condition_states_which_endpoints_a_service_reaches(homes, pods, is_whole, words) -> None:
    there = [a_pod(labels={"app": "web"}, annotations={GIVEN: cluster}) for cluster in pods]
    others = [a_pod(labels={"app": "other"}, annotations={GIVEN: "r9"}), a_pod(labels={"app": "web"})]
    service = a_service("web", selector={"app": "web"})
    found = service_reach.of(service, [*there, *others], frozenset(homes), are_networks_joined=False)
    assert found is not None
    assert found.is_whole is is_whole
    assert words in found.message
    assert service_reach.of(service, there, frozenset(homes), are_networks_joined=True).is_whole
    assert service_reach.of(a_service("own"), there, frozenset(homes), are_networks_joined=False) is None


def test_an_invalid_annotation_is_restored_by_its_cluster() -> None:
    broken = a_service("web").with_metadata(annotations={"tenancy.x-k8s.io/balancer.r1": "?"})
    service = synced_up(broken, balancer("192.0.2.1"), "r1")
    assert json.loads(service.annotations["tenancy.x-k8s.io/balancer.r1"]) == [{"ip": "192.0.2.1"}]


def test_node_ports_that_super_clusters_chose_are_noted_by_each_of_them() -> None:
    note = "transparency.tenancy.x-k8s.io/nodePorts."

    def given(node_port: int) -> Object:
        spec = {"ports": [{"port": 80, "nodePort": node_port}]}
        return a_service("web", **spec).with_metadata(annotations={keys.NODE_PORTS: "80/TCP=30001"})

    service = a_service("web", ports=[{"port": 80, "nodePort": 30001}])
    assert synced_up(service, given(30001), "r1").annotations == {}
    service = synced_up(service, given(31111), "r1")
    service = synced_up(service, given(32222), "r2")
    assert service.annotations == {f"{note}r1": "80/TCP=31111", f"{note}r2": "80/TCP=32222"}
    assert synced_up(service, given(30001), "r1").annotations == {f"{note}r2": "80/TCP=32222"}
    assert synced_up(service, given(31111), "r1", homes='{"r1":1}').annotations == {f"{note}r1": "80/TCP=31111"}
