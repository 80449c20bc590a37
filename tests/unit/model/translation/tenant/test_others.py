"""Claims, secrets, accounts and policies of tenants below."""

from typing import Any

from hansa.kube import resources
from hansa.model import keys
from hansa.model.pair import Key, Link
from hansa.model.placement import PlacementContext
from hansa.model.references import Missing, Reference
from tenants import KEY, LINK, MODE, a_link, an_object, desired

CLAIMS, POLICIES = resources.PERSISTENT_VOLUME_CLAIMS, resources.NETWORK_POLICIES


def test_a_claims_source_in_another_namespace_is_in_the_tenants_own() -> None:
    source = {"kind": "PersistentVolumeClaim", "name": "old", "namespace": "data"}
    claim = an_object("PersistentVolumeClaim", "new", "shop", spec={"dataSourceRef": source})
    assert desired(claim, resource=CLAIMS).spec["dataSourceRef"]["namespace"] == f"{KEY}-data"
    here = an_object("PersistentVolumeClaim", "new", "shop", spec={"dataSourceRef": {"name": "old"}})
    assert desired(here, resource=CLAIMS).spec == {"dataSourceRef": {"name": "old"}}


def test_a_claim_begins_with_the_data_of_a_claim_of_its_tenant_or_waits() -> None:
    def named(**spec: Any) -> list[Reference]:
        return list(MODE.rules[CLAIMS].references(an_object("PersistentVolumeClaim", "new", "shop", spec=spec)))

    source = {"kind": "PersistentVolumeClaim", "name": "old"}
    assert named(dataSource=source) == [Reference(CLAIMS, "shop", "old", missing=Missing.REQUIRED)]
    elsewhere = named(dataSource=source, dataSourceRef=source | {"namespace": "data"})
    assert elsewhere == [Reference(CLAIMS, "data", "old", missing=Missing.REQUIRED)]
    assert named() == named(dataSource=source, volumeName="pv-1") == named(dataSource={"kind": "VolumeSnapshot"}) == []


def test_a_token_that_is_copied_names_its_original() -> None:
    token = an_object("Secret", "robot-token", "shop", type="kubernetes.io/service-account-token", data={})
    lower = desired(token, resource=resources.SECRETS)
    assert (lower.get("type"), lower.labels[keys.TOKEN_UID]) == ("Opaque", token.uid)
    plain = desired(an_object("Secret", "plain", "shop", type="Opaque"), resource=resources.SECRETS)
    assert keys.TOKEN_UID not in plain.labels


def policy(link: Link = LINK, **spec: Any) -> dict[str, Any]:
    return desired(an_object("NetworkPolicy", "p", "shop", spec=spec), link, POLICIES).spec


def test_a_policys_peers_are_the_tenants_own() -> None:
    own = {"matchLabels": {keys.UPPER: LINK.upper_id}}
    both = policy(ingress=[{"from": [{"namespaceSelector": {}}]}], egress=[{"to": [{"namespaceSelector": {}}]}])
    assert both == {
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [{"namespaceSelector": own}]}],
        "egress": [{"to": [{"namespaceSelector": own}]}],
    }


def test_a_policy_with_no_peers_or_all_peers_stays_as_it_is_without_isolation() -> None:
    link = a_link(isolation=None)
    for spec in ({"podSelector": {}}, {"ingress": [{}]}, {"ingress": [], "policyTypes": ["Ingress"]}):
        assert policy(link, **spec) == spec | {"policyTypes": ["Ingress"]}


def test_referable_objects_are_synced_down_whether_a_pod_names_them_or_not() -> None:
    facts = PlacementContext(frozenset({"super"}), {}, lambda *_: frozenset())
    for resource in (
        resources.CONFIG_MAPS,
        resources.SECRETS,
        resources.SERVICE_ACCOUNTS,
        CLAIMS,
        resources.NAMESPACES,
    ):
        placed = MODE.rules[resource].placement(
            an_object(resource.kind, "a", "shop"), Key("t", resource, "shop", "a"), facts
        )
        assert placed == {"super": 2}
