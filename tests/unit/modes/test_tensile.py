"""tensile-kube's table: which kinds are synced, where to, and the effect of its settings."""

from collections.abc import Mapping
from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.model.mode import Mode
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, PlacementContext
from hansa.modes import tensile
from hansa.modes.tensile_settings import Controllers, CredentialSource, LowerSettings, TensileSettings, link
from hansa.nodes.settings import NodeSettings

ALWAYS = {
    resources.PODS,
    resources.CONFIG_MAPS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.PERSISTENT_VOLUME_CLAIMS,
}
RIGHTS = {resources.ROLES, resources.ROLE_BINDINGS}
SERVICES = {resources.SERVICES, resources.ENDPOINT_SLICES}
NODE = NodeSettings("vn1", "a")


def a_mode(**settings: Any) -> Mode:
    return tensile.mode(
        TensileSettings(CredentialSource(), (LowerSettings(CredentialSource(), NODE, link(NODE)),), **settings)
    )


def placed(
    mode: Mode, resource: Resource, place: NamespacedName, *, users: Mapping[Resource, str] | None = None, **fields: Any
) -> Intents:
    obj = Object.of({"metadata": {"namespace": place.namespace, "name": place.name}} | fields)
    used = users or {}
    facts = PlacementContext(frozenset({"a", "b"}), {"vn1": "a"}, lambda of, _: frozenset(used.get(of, "")))
    return mode.rules[resource].placement(obj, Key("up", resource, *place), facts)


@pytest.mark.parametrize(
    ("switched_on", "kinds"),
    [
        (set(Controllers), ALWAYS | RIGHTS | SERVICES),
        ({Controllers.RIGHTS}, ALWAYS | RIGHTS),
        ({Controllers.SERVICES}, ALWAYS | SERVICES),
        (set(), ALWAYS),
    ],
)
def test_controllers_switch_kinds(switched_on: set[Controllers], kinds: set[Resource]) -> None:
    assert a_mode(controllers=frozenset(switched_on)).rules.keys() == kinds


def test_claims_are_always_synced_down_and_synced_up_only_with_the_volume_controllers() -> None:
    def synced_up(mode: Mode) -> list[Any]:
        lower = Object.of({"metadata": {}, "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}})
        upper = lower.with_fields(spec={"volumeName": "v"}, status={"phase": "Bound"})
        rule = mode.rules[resources.PERSISTENT_VOLUME_CLAIMS]
        return [] if rule.up_patches is None else list(rule.up_patches(upper, lower, Link("up", "id", "a")))

    assert synced_up(a_mode())
    assert not synced_up(a_mode(controllers=frozenset()))


def test_pods_are_where_their_node_stands_for_unless_their_namespace_is_excluded() -> None:
    mode = a_mode(excluded_namespaces=frozenset({"kube-system"}))
    assert placed(mode, resources.PODS, NamespacedName("shop", "web"), spec={"nodeName": "vn1"}) == {"a": 2}
    assert placed(mode, resources.PODS, NamespacedName("shop", "web"), spec={"nodeName": "real"}) == {}
    assert placed(mode, resources.PODS, NamespacedName("kube-system", "web"), spec={"nodeName": "vn1"}) == {}
    assert placed(a_mode(), resources.PODS, NamespacedName("kube-system", "web"), spec={"nodeName": "vn1"}) == {"a": 2}


@pytest.mark.parametrize("resource", sorted(ALWAYS - {resources.PODS} | {resources.ROLES}, key=str))
def test_what_pods_refer_to_is_where_they_are(resource: Resource) -> None:
    assert placed(a_mode(), resource, NamespacedName("shop", "web"), users={resource: "b"}) == {"b": 2}
    assert placed(a_mode(), resource, NamespacedName("shop", "web")) == {}


def test_grants_are_where_their_service_accounts_are_used() -> None:
    users = {resources.SERVICE_ACCOUNTS: "b"}
    subjects = [{"kind": "ServiceAccount", "name": "web"}]
    granted = {"users": users, "subjects": subjects, "roleRef": {"kind": "Role", "name": "reader"}}
    assert placed(a_mode(), resources.ROLE_BINDINGS, NamespacedName("shop", "readers"), **granted) == {"b": 2}
    assert placed(a_mode(), resources.ROLE_BINDINGS, NamespacedName("shop", "readers"), users=users) == {}


@pytest.mark.parametrize("resource", sorted(SERVICES, key=str))
def test_services_are_everywhere_but_those_of_the_system_only_if_wanted(resource: Resource) -> None:
    everywhere = {"a": 2, "b": 2}
    system = NamespacedName("default", "kubernetes"), NamespacedName("kube-system", "kube-dns")
    others = NamespacedName("default", "web"), NamespacedName("shop", "kubernetes")
    mode = a_mode(excluded_namespaces=frozenset({"private"}))
    assert [placed(mode, resource, place) for place in others] == [everywhere] * 2
    assert [placed(mode, resource, place) for place in system] == [{}] * 2
    assert placed(mode, resource, NamespacedName("private", "web")) == {}
    assert [placed(a_mode(syncs_system_services=True), resource, place) for place in system] == [everywhere] * 2


def test_lower_names_are_the_upper_names_except_for_the_root_ca() -> None:
    def below(resource: Resource, name: str, upper_id: str = "id") -> NamespacedName:
        return a_mode().lower_name(Key("up", resource, "shop", name), "u", Link("up", upper_id, "a"))

    assert below(resources.PODS, "web") == NamespacedName("shop", "web")
    ours = below(resources.CONFIG_MAPS, "kube-root-ca.crt")
    assert ours.name != "kube-root-ca.crt"
    assert ours != below(resources.CONFIG_MAPS, "kube-root-ca.crt", "another id")


def test_a_volume_is_synced_up_when_it_is_bound_to_a_claim_of_ours() -> None:
    mode = tensile.volumes("id-of-up")
    assert mode.name == "tensile-volumes"
    claims, volumes = (mode.rules[r] for r in (resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES))
    key = Key("a", resources.PERSISTENT_VOLUME_CLAIMS, "shop", "data")
    facts = PlacementContext(frozenset({"up"}), {}, lambda *_: frozenset({"up"}))
    claim = Object.of({"metadata": {"namespace": "shop", "name": "data"}, "spec": {"volumeName": "v1"}})
    ours = stamp.put(claim, stamp.Origin("id-of-up", "u1", "shop", "data"))
    another = stamp.put(claim, stamp.Origin("another", "u1", "shop", "data"))
    assert [(one.resource, one.namespace, one.name) for one in claims.references(ours)] == [
        (resources.PERSISTENT_VOLUMES, "", "v1")
    ]
    assert [claims.needs(one, key, facts) for one in (ours, claim, another)] == [{"up": 2}, {}, {}]
    assert claims.placed(ours, key, facts) == {}, "the claim itself is above already"
    assert volumes.placed(claim, Key("a", resources.PERSISTENT_VOLUMES, "", "v1"), facts) == {"up": 2}


def test_copies_have_the_labels_and_annotations_of_tensile_kube() -> None:
    obj = Object.of({"apiVersion": "v1", "kind": "Any", "metadata": {"namespace": "shop", "name": "web"}, "spec": {}})
    way = Link("up", "id-of-up", "a", link(NODE))
    for resource in a_mode().rules:
        copied = a_mode().desired(obj, Key("up", resource, "shop", "web"), way)
        if resource == resources.PODS:
            assert copied.labels[keys.VIRTUAL_POD] == "true"
        else:
            assert copied.annotations[keys.GLOBAL] == "true"
