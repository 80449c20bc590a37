"""Placement policies."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import placement, role_bindings
from hansa.model.pair import Grade, Key, Unknown

KEY = Key("up", resources.SECRETS, "shop", "web")
OBJECT = Object.of({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"nodeName": "vn-b"}})


def facts(users: Mapping[tuple[Resource, str], frozenset[str] | Unknown] | None = None) -> placement.PlacementContext:
    def used(resource: Resource, place: NamespacedName) -> frozenset[str] | Unknown:
        assert place.namespace == "shop"
        return (users or {}).get((resource, place.name), frozenset())

    return placement.PlacementContext(frozenset({"a", "b"}), {"vn-a": "a", "vn-b": "b"}, used)


def test_everywhere_and_only_read() -> None:
    assert placement.everywhere(OBJECT, KEY, facts()) == {"a": Grade.CHOSEN, "b": Grade.CHOSEN}
    assert placement.only_read(OBJECT, KEY, facts()) == {}


@pytest.mark.parametrize(("node", "clusters"), [("vn-a", {"a"}), ("real-node", set()), ("", set()), (None, set())])
def test_a_pod_is_placed_in_the_cluster_of_its_virtual_node(node: str | None, clusters: set[str]) -> None:
    pod = OBJECT.with_fields(spec={"nodeName": node} if node is not None else None)
    assert placement.by_node_name(pod, KEY, facts()) == dict.fromkeys(clusters, Grade.CHOSEN)


def test_referenced_objects_are_placed_where_their_users_are() -> None:
    used = facts({(resources.SECRETS, "web"): frozenset({"b"})})
    assert placement.with_users(OBJECT, KEY, used) == {"b": Grade.CHOSEN}
    unknown = Unknown("pods are not listed yet")
    assert placement.with_users(OBJECT, KEY, facts({(resources.SECRETS, "web"): unknown})) is unknown


def binding(*subjects: Mapping[str, str], role: Mapping[str, str] | None = None) -> Object:
    metadata = {"name": "readers", "namespace": "shop"}
    return Object.of({"metadata": metadata, "subjects": subjects or None, "roleRef": role})


def test_a_grant_follows_the_service_accounts_of_its_namespace() -> None:
    policy = placement.with_users_of(role_bindings.accounts)
    account = {"kind": "ServiceAccount", "name": "web"}
    others = {"kind": "User", "name": "web"}, {"kind": "ServiceAccount", "name": "batch", "namespace": "other"}
    users: dict[tuple[Resource, str], frozenset[str] | Unknown] = {
        (resources.SERVICE_ACCOUNTS, "web"): frozenset({"a"}),
        (resources.SERVICE_ACCOUNTS, "batch"): frozenset({"b"}),
    }
    assert policy(binding(account, *others), KEY, facts(users)) == {"a": Grade.CHOSEN}
    assert policy(binding(*others), KEY, facts(users)) == {}
    assert policy(binding(), KEY, facts(users)) == {}
    users[resources.SERVICE_ACCOUNTS, "batch"] = Unknown("pods are not listed yet")
    assert policy(binding(account, account | {"name": "batch"}), KEY, facts(users)) == Unknown(
        "pods are not listed yet"
    )


def test_a_binding_names_its_role_but_not_a_cluster_role() -> None:
    assert [r.name for r in role_bindings.role(binding(role={"kind": "Role", "name": "reader"}))] == ["reader"]
    assert list(role_bindings.role(binding(role={"kind": "ClusterRole", "name": "reader"}))) == []


def test_an_excluded_object_is_placed_nowhere_until_it_is_deleted() -> None:
    policy = placement.outside(lambda key: key.namespace == "shop", placement.by_node_name)
    assert policy(OBJECT, KEY, facts()) == {}
    assert policy(OBJECT, KEY._replace(namespace="other"), facts()) == {"b": Grade.CHOSEN}
    leaving = Object.of(OBJECT.to_dict() | {"metadata": {"name": "web", "deletionTimestamp": "2026-11-15T12:00:00Z"}})
    assert policy(leaving, KEY, facts()) == {"b": Grade.CHOSEN}, "we are the kubelet that must let it go"


def test_an_annotation_places_an_object() -> None:
    policy = placement.by_annotation("where", lambda text: text.split(","))
    placed = Object.of({"metadata": {"name": "web", "annotations": {"where": "a,z"}}})
    assert policy(placed, KEY, facts()) == {"a": Grade.CHOSEN, "z": Grade.CHOSEN}, "also one that no route leads to yet"
    assert policy(OBJECT, KEY, facts()) == {}
    one = placement.by_annotation("where")
    assert one(Object.of({"metadata": {"name": "web", "annotations": {"where": "a"}}}), KEY, facts()) == {
        "a": Grade.CHOSEN
    }


def test_the_placement_of_any_of_several_policies_applies() -> None:
    policy = placement.any_of(placement.by_node_name, placement.with_users)
    key = Key("up", resources.PODS, "shop", "web")
    used = facts({(resources.PODS, "web"): frozenset({"a"})})
    assert policy(OBJECT, key, used) == {"a": Grade.CHOSEN, "b": Grade.CHOSEN}
    unknown = Unknown("pods are not listed yet")
    assert policy(OBJECT, key, facts({(resources.PODS, "web"): unknown})) == unknown


def test_objects_placed_with_their_namespace_are_where_it_is() -> None:
    there = replace(facts(), of_namespace=lambda name: {"a": Grade.CANDIDATE} if name == KEY.namespace else {})
    assert placement.with_namespace(OBJECT, KEY, there) == {"a": Grade.CANDIDATE}
    assert placement.with_namespace(OBJECT, KEY, facts()) == {}
