"""The policies that keep tenants' pods apart, and what is left of the policies of tenants."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.model import keys
from hansa.model.mode import MOST_SELECTING
from hansa.model.pair import Key
from hansa.model.references import Missing
from hansa.model.translation.tenant import isolation
from hansa.model.translation.tenant.peers import Direction
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.model.translation.tenant.tenant_settings import ApiEndpoint, Isolation
from tenants import KEY, LINK, MODE, a_link, a_pod, an_object, desired

OWN = {"namespaceSelector": {"matchLabels": {keys.UPPER: LINK.upper_id}}}
ROOT = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": KEY}}}
SMALL = Isolation(inside=frozenset({"10.0.0.0/8"}), name_servers=frozenset({"10.0.0.53"}))


def block(cidr: str, *exceptions: str) -> dict[str, Any]:
    return {"ipBlock": {"cidr": cidr} | ({"except": list(exceptions)} if exceptions else {})}


OUTSIDE = [block("0.0.0.0/0", "10.0.0.0/8"), block("::/0")]
DNS = {"to": [block("10.0.0.53/32")], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
API_PORTS = [{"port": port, "protocol": "TCP"} for port in (8443, 443, 6443)]
API = {"to": [block("10.9.9.9/32")], "ports": API_PORTS[:1]}
CONTROL_PLANE = {"to": [ROOT], "ports": API_PORTS}


def lower(name: str = "p", *, lists: TenantLists | None = None, **spec: Any) -> dict[str, Any]:
    link = a_link(
        isolation=SMALL,
        api_addresses=frozenset({"10.9.9.9", "127.0.0.1"}),
        api_port="8443",
        lists=lists or TenantLists(),
    )
    return desired(an_object("NetworkPolicy", name, "shop", spec=spec), link, resources.NETWORK_POLICIES).spec


def egress(rule: dict[str, Any], **lists: frozenset[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lower(egress=[rule], policyTypes=["Egress"], lists=TenantLists(**lists))["egress"]
    return found


def test_a_tenants_pods_reach_the_tenant_the_world_name_servers_and_their_api_server() -> None:
    assert lower(isolation.PERMIT_EGRESS) == {
        "podSelector": {"matchExpressions": [{"key": keys.EGRESS_POLICY, "operator": "DoesNotExist"}]},
        "policyTypes": ["Egress"],
        "egress": [{"to": [OWN, *OUTSIDE]}, DNS, CONTROL_PLANE, API],
    }


def test_a_tenants_pods_reach_their_api_server_where_it_is_relayed() -> None:
    link = a_link(isolation=SMALL, api_endpoints=(ApiEndpoint("10.7.0.1", 7001),))
    empty = an_object("NetworkPolicy", isolation.PERMIT_EGRESS, "shop", spec={})
    rule = {"to": [block("10.7.0.1/32")], "ports": [{"port": 7001, "protocol": "TCP"}]}
    assert rule in desired(empty, link, resources.NETWORK_POLICIES).spec["egress"]
    own = an_object("NetworkPolicy", "p", "shop", spec={"policyTypes": ["Egress"], "egress": [{"to": [rule["to"][0]]}]})
    assert rule in desired(own, link, resources.NETWORK_POLICIES).spec["egress"]


def test_a_tenants_pods_are_reached_by_the_tenant_the_world_and_its_control_plane() -> None:
    assert lower(isolation.PERMIT_INGRESS) == {
        "podSelector": {"matchExpressions": [{"key": keys.INGRESS_POLICY, "operator": "DoesNotExist"}]},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [OWN, *OUTSIDE, ROOT, block("10.9.9.9/32")]}],
    }


def test_all_else_is_forbidden() -> None:
    assert lower(isolation.DENY) == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def test_a_tenant_does_not_replace_these_policies() -> None:
    assert lower(isolation.DENY, ingress=[{}]) == lower(isolation.DENY)


def test_an_administrator_names_further_peers_by_cidr_and_by_label_of_namespaces() -> None:
    lists = TenantLists(ingress_peers=frozenset({"10.1.0.0/16", "team=edge"}))
    [rule] = lower(isolation.PERMIT_INGRESS, lists=lists)["ingress"]
    assert block("10.1.0.0/16") in rule["from"]
    assert {"namespaceSelector": {"matchLabels": {"team": "edge"}}} in rule["from"]
    assert lower(isolation.PERMIT_EGRESS, lists=lists) == lower(isolation.PERMIT_EGRESS)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (block("192.0.2.0/24"), [block("192.0.2.0/24")]),
        (block("0.0.0.0/0"), OUTSIDE[:1]),
        (block("8.0.0.0/5", "9.0.0.0/8"), [block("8.0.0.0/5", "9.0.0.0/8", "10.0.0.0/8")]),
        (block("10.0.0.0/8"), []),
        (block("10.2.3.4/32"), []),
        (block("::ffff:10.2.3.4/128"), []),
        (block("::ffff:192.0.2.1/128"), [block("192.0.2.1/32")]),
        (block("::/0"), [block("::/0")]),
        ({"namespaceSelector": {}}, [OWN]),
    ],
)
def test_a_block_of_a_tenant_loses_what_is_inside(given: dict[str, Any], left: list[dict[str, Any]]) -> None:
    rules = egress({"to": [given], "ports": [{"port": 80}]})
    assert rules == ([{"to": left, "ports": [{"port": 80}]}] if left else [])


def test_a_block_of_a_tenant_keeps_what_an_administrator_names() -> None:
    named = {"egress_peers": frozenset({"10.1.0.0/16"})}
    web = {"ports": [{"port": 80}]}
    assert egress({"to": [block("10.0.0.0/8", "10.1.2.0/24")], **web}, **named) == [
        {"to": [block("10.1.0.0/16", "10.1.2.0/24")], **web}
    ]
    assert egress({"to": [block("10.1.7.0/24")], **web}, **named) == [{"to": [block("10.1.7.0/24")], **web}]
    assert egress({"to": [block("10.0.0.0/8", "10.1.0.0/16")], **web}, **named) == []


def test_a_rule_for_everybody_permits_no_more_than_ours() -> None:
    ours = lower(isolation.PERMIT_EGRESS)["egress"]
    assert egress({}) == egress({"to": []}) == ours
    assert egress({"ports": [{"port": 53}]}) == [{"to": [OWN, *OUTSIDE], "ports": [{"port": 53}]}, DNS]
    assert egress({"ports": [{"port": 8443}]})[1:] == [CONTROL_PLANE, API]
    assert egress({"ports": [{"port": 22}]})[1:] == []
    assert lower(ingress=[{}])["ingress"] == lower(isolation.PERMIT_INGRESS)["ingress"]


def test_a_block_with_the_tenants_api_server_permits_its_port() -> None:
    assert egress({"to": [block("10.9.9.9/32")]}) == [CONTROL_PLANE, API]
    assert egress({"to": [block("10.9.9.9/32")], "ports": [{"port": 22}]}) == []


def test_a_direction_without_rules_stays_closed() -> None:
    assert lower(policyTypes=["Ingress", "Egress"], podSelector={}) == {
        "policyTypes": ["Ingress", "Egress"],
        "podSelector": {},
    }
    assert lower(podSelector={})["policyTypes"] == ["Ingress"]
    assert lower(egress=[{"to": [block("10.0.0.0/8")]}])["policyTypes"] == ["Ingress", "Egress"]


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"podSelector": {}}, {keys.INGRESS_POLICY}),
        ({"podSelector": {}, "policyTypes": ["Egress"]}, {keys.EGRESS_POLICY}),
        ({"podSelector": {"matchLabels": {"app": "web"}}, "egress": [{}]}, {keys.INGRESS_POLICY, keys.EGRESS_POLICY}),
        ({"podSelector": {"matchLabels": {"app": "db"}}}, set()),
        ({"podSelector": {"matchLabels": {"istio.io/rev": "a"}}}, set()),  # a label that is not synced
    ],
)
def test_a_pod_that_policies_of_the_tenant_select_is_labelled(spec: dict[str, Any], labels: set[str]) -> None:
    policy = an_object("NetworkPolicy", "p", "shop", spec=spec)
    pod = a_pod(labels={"app": "web", "istio.io/rev": "a", keys.INGRESS_POLICY: "forged"})
    found = desired(pod, a_link([policy])).labels
    assert {key for key in found if key.endswith("-policy")} == labels
    assert desired(pod, a_link([policy], isolation=None)).labels.keys().isdisjoint(labels)


def test_of_too_many_policies_a_pod_is_labelled_as_if_they_selected_it() -> None:
    policies = [
        an_object("NetworkPolicy", f"p{n}", "shop", spec={"podSelector": {"matchLabels": {"a": "b"}}})
        for n in range(MOST_SELECTING)
    ]
    assert {keys.INGRESS_POLICY, keys.EGRESS_POLICY} <= desired(a_pod(), a_link(policies)).labels.keys()
    assert {keys.INGRESS_POLICY, keys.EGRESS_POLICY}.isdisjoint(desired(a_pod(), a_link(policies[1:])).labels)


def test_policies_stay_while_pods_are_left_but_those_of_the_tenant() -> None:
    outlives = MODE.rules[resources.NETWORK_POLICIES].outlives
    kinds = [outlives(Key("t", resources.NETWORK_POLICIES, "shop", name)) for name in (isolation.DENY, "p")]
    assert kinds == [resources.PODS, None]


def test_pods_wait_for_the_policies() -> None:
    found = [one for one in MODE.rules[resources.PODS].references(a_pod()) if one.resource.kind == "NetworkPolicy"]
    assert [(one.namespace, one.name, one.missing) for one in found] == [
        ("shop", name, Missing.PLACEHOLDER) for name in isolation.NAMES
    ]
    assert list(Direction) == ["Ingress", "Egress"]
