"""The addresses of endpoints that users write: which are synced, and the message about others."""

import pytest

from hansa.kube import resources
from hansa.model.pair import Key
from hansa.model.references import Missing
from hansa.model.translation.tenant import user_endpoints
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.model.translation.tenant.tenant_settings import ApiEndpoint
from tenants import MODE, a_link, a_service, an_object, desired

OWN, OTHER = "10.244.0.7", "10.244.0.8"
WEB = {"targetRef": {"kind": "Pod", "name": "web"}}


def a_slice(*endpoints, name="web-1", namespace="shop"):
    return an_object("EndpointSlice", name, namespace, addressType="IPv4", endpoints=list(endpoints))


def some_endpoints(*addresses):
    return an_object("Endpoints", "web", "shop", subsets=[{"addresses": list(addresses), "ports": [{"port": 80}]}])


def a_copy(address=OWN, phase="Running", **spec):
    """The tenant's pod web, as the super cluster reports it."""
    status = {"phase": phase, "podIPs": [{"ip": address}]}
    return an_object("Pod", "web", "shop", spec=spec, status=status)


def synced(obj, link):
    resource = resources.ENDPOINT_SLICES if obj.kind == "EndpointSlice" else resources.ENDPOINTS
    lower = desired(obj, link, resource)
    subsets = lower.get("subsets") or ()
    return [a for one in lower.get("endpoints") or () for a in one["addresses"]] + [
        one["ip"] for subset in subsets for one in subset["addresses"]
    ]


@pytest.mark.parametrize(
    ("pod", "is_synced"),
    [
        (a_copy(), True),
        (a_copy(OTHER), False),
        (a_copy(phase="Succeeded"), False),  # its address may be another pod's by now
        (a_copy(hostNetwork=True), False),  # its address is the node's
        (None, False),
    ],
)
def test_an_address_is_synced_if_the_pod_in_its_target_has_it_in_the_super_cluster(pod, is_synced):
    link = a_link(below=[pod] if pod else ())
    for obj in (a_slice({"addresses": [OWN], **WEB}), some_endpoints({"ip": OWN, **WEB})):
        assert synced(obj, link) == ([OWN] if is_synced else [])
        assert bool(user_endpoints.omitted(obj, link)) is not is_synced


def test_what_the_tenant_writes_into_the_status_of_its_pod_does_not_count():
    assert synced(a_slice({"addresses": [OTHER], **WEB}), a_link(above=[a_copy(OTHER)], below=[a_copy()])) == []


def test_with_joined_networks_pods_of_other_super_clusters_are_known_from_the_tenant():
    obj, elsewhere = a_slice({"addresses": [OTHER], **WEB}), a_copy(OTHER)
    assert synced(obj, a_link(above=[elsewhere])) == []
    assert synced(obj, a_link(above=[elsewhere], are_networks_joined=True)) == [OTHER]


def test_the_other_addresses_of_an_object_are_synced_and_the_message_says_how_to_allow_the_rest():
    link = a_link(below=[a_copy()])
    obj = a_slice({"addresses": [OTHER]}, {"addresses": [OWN], **WEB})
    assert synced(obj, link) == [OWN]
    assert user_endpoints.omitted(obj, link) == (
        f"address {OTHER}, which is not that of a pod in its targetRef, is not allowed for tenant vc-sample-1;"
        " allow it with annotation tenancy.x-k8s.io/endpoint-addresses on its VirtualCluster"
    )


def test_an_administrator_allows_ranges_in_which_no_addresses_of_a_node_itself_are():
    link = a_link(lists=TenantLists(endpoint_addresses=frozenset({"0.0.0.0/0", "fd00::/8"})))
    good = ["192.0.2.1", "fd00::1"]
    bad = ["127.0.0.1", "169.254.169.254", "fe80::1", "::ffff:127.0.0.1", "::ffff:192.0.2.1", "name.example.com"]
    assert synced(a_slice(*({"addresses": [one]} for one in (*good, *bad))), link) == good


@pytest.mark.parametrize(
    ("name", "namespace", "is_synced"),
    [("kubernetes", "default", True), ("kubernetes", "shop", False), ("other", "default", False)],
)
def test_only_the_endpoints_of_the_api_server_may_have_its_addresses(name, namespace, is_synced):
    obj = a_slice({"addresses": ["192.0.2.1"]}, {"addresses": [OTHER]}, name=name, namespace=namespace)
    link = a_link(api_addresses=frozenset({"192.0.2.1"}))
    assert synced(obj, link) == (["192.0.2.1"] if is_synced else [])


API = (ApiEndpoint("10.7.0.1", 7001), ApiEndpoint("10.7.0.2", 7001), ApiEndpoint("10.7.0.3", 7002))


def test_an_api_server_without_an_address_is_reached_at_its_endpoints_with_one_port():
    empty = a_slice(name="kubernetes", namespace="default")
    made = desired(empty, a_link(api_endpoints=API), resources.ENDPOINT_SLICES)
    assert [one["addresses"] for one in made.get("endpoints")] == [["10.7.0.1"], ["10.7.0.2"]]
    assert (made.get("ports"), made.get("addressType")) == (
        [{"name": "https", "port": 7001, "protocol": "TCP"}],
        "IPv4",
    )
    assert made.labels["kubernetes.io/service-name"] == "kubernetes"
    nowhere = desired(empty, a_link(), resources.ENDPOINT_SLICES)
    assert (nowhere.get("addressType"), nowhere.get("endpoints")) == ("IPv4", None)
    other = a_slice(name="other", namespace="default")
    assert synced(other, a_link(api_endpoints=API)) == []


@pytest.mark.parametrize(("is_relayed", "address"), [(False, "192.0.2.1"), (True, "10.7.0.1")])
def test_the_addresses_that_an_api_server_gives_hold_unless_it_is_relayed(is_relayed, address):
    obj = a_slice({"addresses": ["192.0.2.1"]}, name="kubernetes", namespace="default")
    link = a_link(api_addresses=frozenset({"192.0.2.1"}), api_endpoints=API[:1], is_api_relayed=is_relayed)
    assert synced(obj, link) == [address]


def test_an_api_server_that_is_reached_elsewhere_is_no_reason_for_an_event():
    obj = a_slice({"addresses": [OTHER]}, name="kubernetes", namespace="default")
    assert user_endpoints.omitted(obj, a_link()) != ""
    assert user_endpoints.omitted(obj, a_link(api_endpoints=API)) == ""


def test_the_service_of_the_api_server_has_a_slice_also_if_the_tenant_has_none():
    found = MODE.rules[resources.SERVICES].references(a_service("kubernetes", "default"))
    assert [(one.resource, one.name) for one in found if one.missing is Missing.PLACEHOLDER] == [
        (resources.ENDPOINT_SLICES, "kubernetes")
    ]
    others = MODE.rules[resources.SERVICES].references(a_service("kubernetes", "shop"))
    assert [one.resource for one in others] == [resources.ENDPOINTS]


def test_they_are_reconciled_when_a_pod_of_their_namespace_changes_but_for_those_of_the_api_server():
    rule = MODE.rules[resources.ENDPOINT_SLICES]
    names = {name: [*rule.computed_from(Key("t", rule.resource, "default", name))] for name in ("web", "kubernetes")}
    assert [(one.resource, one.name) for one in names["web"]] == [(resources.PODS, "")]
    assert names["kubernetes"] == []
