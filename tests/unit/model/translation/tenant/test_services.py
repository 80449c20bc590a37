"""A tenant's Services below: their addresses, updates in both directions, and which endpoints are synced."""

import ipaddress
from dataclasses import replace
from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Key
from hansa.model.placement import PlacementContext
from tenants import LINK, MODE, a_link, a_service, an_object, desired, follow, upper_patches

ADDRESS = {
    "clusterIP": "10.32.0.5",
    "clusterIPs": ["10.32.0.5"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
FACTS = PlacementContext(frozenset({"super"}), {}, lambda *_: frozenset())
SERVICES = resources.SERVICES


def below(**spec: Any) -> Object:
    """A lower Service as it is."""
    return desired(a_service("web"), resource=SERVICES).with_fields(spec=spec)


def test_a_lower_service_has_the_same_cluster_ip_if_its_cluster_has_the_range() -> None:
    service = a_service("web", **ADDRESS)
    assert desired(service, resource=SERVICES).spec == ADDRESS
    for ranges in ((), (ipaddress.ip_network("10.33.0.0/16"),)):
        other = desired(service, a_link(service_ranges=ranges), SERVICES)
        assert other.spec == {"ipFamilyPolicy": "SingleStack"}
        assert other.annotations[keys.CLUSTER_IP] == "10.32.0.5"


def test_addresses_outside_the_tenants_range_are_not_requested() -> None:
    """A tenant's administrator gives Services any address by a ServiceCIDR of the tenant."""
    assert desired(a_service("web", clusterIP="8.8.8.8", clusterIPs=["8.8.8.8"]), resource=SERVICES).spec == {}
    mixed = a_service("web", clusterIP="10.32.0.5", clusterIPs=["10.32.0.5", "2001:4860:4860::8888"])
    assert desired(mixed, resource=SERVICES).spec["clusterIPs"] == ["10.32.0.5"]


def test_a_headless_service_is_headless_in_the_lower_cluster() -> None:
    headless = a_service("web", clusterIP="None", clusterIPs=["None"])
    for link in (LINK, a_link(service_ranges=())):
        lower = desired(headless, link, SERVICES)
        assert lower.spec == {"clusterIP": "None"}
        assert keys.CLUSTER_IP not in lower.annotations


def test_an_external_name_is_synced_for_its_own_type_only() -> None:
    """Random objects found it: the API server keeps the field for any type, and only that of this type is checked."""
    name = "kubernetes.default.svc.cluster.local"
    for type_ in ("ClusterIP", "NodePort", "LoadBalancer"):
        assert "externalName" not in desired(a_service("web", type=type_, externalName=name), resource=SERVICES).spec
    service = a_service("web", type="ExternalName", externalName=name)
    assert desired(service, resource=SERVICES).spec["externalName"] == name


def test_two_families_are_wished_for_where_addresses_are_others() -> None:
    service = a_service("web", clusterIP="10.32.0.5", ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"])
    assert desired(service, a_link(service_ranges=()), SERVICES).spec == {"ipFamilyPolicy": "PreferDualStack"}


def test_fields_allocated_by_the_lower_cluster_are_kept() -> None:
    upper = a_service("web", **ADDRESS, ports=[{"port": 80, "nodePort": 30001}], healthCheckNodePort=30002)
    given = {"clusterIP": "10.96.0.9", "ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80, "nodePort": 31111}]}
    there = desired(upper, resource=SERVICES).with_fields(spec=given)
    assert follow(there, upper, SERVICES) == []


def test_selectors_and_ports_follow() -> None:
    upper = a_service("web", selector={"app": "new"}, ports=[{"port": 81}], type="LoadBalancer")
    [part] = follow(
        below(selector={"app": "old"}, ports=[{"port": 80, "nodePort": 31111}], type="NodePort"), upper, SERVICES
    )
    assert part.patch["spec"] == {"selector": {"app": "new"}, "ports": [{"port": 81}], "type": "LoadBalancer"}


def test_a_different_lower_address_is_annotated_once() -> None:
    upper = a_service("web", **ADDRESS)
    [part] = upper_patches(upper, below(clusterIP="10.96.0.9"), SERVICES)
    assert part.patch == {"metadata": {"annotations": {keys.SUPER_CLUSTER_IP: "10.96.0.9"}}}
    reported = upper.with_metadata(annotations={keys.SUPER_CLUSTER_IP: "10.96.0.9"})
    assert upper_patches(reported, below(clusterIP="10.96.0.9"), SERVICES) == []
    for same in ("10.32.0.5", "None", ""):
        assert upper_patches(upper, below(clusterIP=same), SERVICES) == []


def test_load_balancer_addresses_are_synced_up() -> None:
    reported = {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}
    [part] = upper_patches(a_service("web", **ADDRESS), below(**ADDRESS).with_fields(status=reported), SERVICES)
    assert (part.subresource, part.patch) == ("status", {"status": reported})


@pytest.mark.parametrize(
    ("manager", "is_synced"),
    [
        ("endpointslice-controller.k8s.io", False),
        ("endpointslicemirroring-controller.k8s.io", False),
        ("example.com/mine", True),
        (None, True),
    ],
)
def test_endpoint_slices_are_synced_unless_the_super_cluster_makes_them_itself(
    manager: str | None, is_synced: bool
) -> None:
    labels = {"kubernetes.io/service-name": "web"} | (
        {"endpointslice.kubernetes.io/managed-by": manager} if manager else {}
    )
    made = an_object("EndpointSlice", "web-1", "shop", labels=labels)
    placed = MODE.rules[resources.ENDPOINT_SLICES].placement(
        made, Key("t", resources.ENDPOINT_SLICES, "shop", "web-1"), FACTS
    )
    assert bool(placed) is is_synced


def test_endpoints_are_synced_with_a_service_without_a_selector() -> None:
    def named(service: Object) -> list[tuple[str, str]]:
        return [(str(one.resource), one.name) for one in MODE.rules[SERVICES].references(service)]

    assert named(a_service("web")) == [("endpoints", "web")]
    assert named(a_service("web", selector={"app": "web"})) == []
    assert named(a_service("web", type="ExternalName", externalName="example.com")) == []
    users = replace(FACTS, users=lambda *_: frozenset({"super"}))
    rule, key = MODE.rules[resources.ENDPOINTS], Key(LINK.upper, resources.ENDPOINTS, "shop", "web")
    one = an_object("Endpoints", "web", "shop")
    assert (bool(rule.placement(one, key, users)), bool(rule.placement(one, key, FACTS))) == (True, False)
