"""EndpointSlices lead to the delegates of other clusters: allowed addresses, bounded slices, and few changes."""

from ipaddress import ip_network
from typing import Any

import pytest

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.federation import endpoint_slices, endpoints
from hansa.model.translation.federation.endpoints import PodNetwork

NETWORKS = tuple(PodNetwork("", ip_network(one)) for one in ("10.0.0.0/8", "fd00::/8"))
NODE = "admiralty-namespace-shop-c2"


def a_service(**spec: Any) -> Object:
    metadata = {
        "namespace": "shop",
        "name": "web",
        "uid": "s1",
        "annotations": {keys.ORIGINAL_SELECTOR: "app=web"},
    }
    rerouted = {"selector": {"multicluster.admiralty.io/app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    families = {"ipFamilies": ["IPv4", "IPv6"]}
    return Object.of({"kind": "Service", "metadata": metadata, "spec": {**rerouted, **families, **spec}})


def a_proxy(
    name: str,
    *ips: str,
    node: str = NODE,
    phase: str = "Running",
    ready: bool = True,
    leaves: bool = False,
    **spec: Any,
) -> Object:
    metadata: dict[str, Any] = {"namespace": "shop", "name": name, "uid": f"uid-{name}", "labels": {"app": "web"}}
    if leaves:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "phase": phase,
        "podIPs": [{"ip": one} for one in ips],
        "conditions": [{"type": "Ready", "status": str(ready)}],
    }
    return Object.of({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, **spec}, "status": status})


def slices(proxies: list[Object], have: list[Object] | None = None, service: Object | None = None) -> list[Object]:
    service = service or a_service()
    found = endpoints.of_service(service, proxies, NETWORKS)
    return list(endpoint_slices.slices(service, found, have or []))


def addresses(one: Object) -> list[str]:
    return [endpoint["addresses"][0] for endpoint in one.get("endpoints")]


def test_each_family_and_each_target_has_slices_of_its_own() -> None:
    made = slices([a_proxy("a", "10.1.0.1", "fd00::1"), a_proxy("b", "10.2.0.1", node="other")])
    shown = {(one.get("addressType"), one.labels[keys.ENDPOINTS_OF], *addresses(one)) for one in made}
    assert shown == {("IPv4", NODE, "10.1.0.1"), ("IPv6", NODE, "fd00::1"), ("IPv4", "other", "10.2.0.1")}
    assert len({one.name for one in made}) == 3
    for one in made:
        assert one.get("ports") == [{"name": "", "protocol": "TCP", "port": 8080}]
        assert one.labels[keys.SERVICE_NAME] == "web"
        assert one.labels["endpointslice.kubernetes.io/managed-by"] == "hansa"
        assert [owner.uid for owner in one.metadata.owner_references] == ["s1"]
    assert slices([a_proxy("a", "10.1.0.1", "fd00::1")], service=a_service(ipFamilies=["IPv6"]))[0].get("endpoints")[0][
        "addresses"
    ] == ["fd00::1"]


@pytest.mark.parametrize(
    ("proxy", "wanted"),
    [
        (a_proxy("a", "10.1.0.1"), (True, True, False)),
        (a_proxy("a", "10.1.0.1", ready=False), (False, False, False)),
        (a_proxy("a", "10.1.0.1", leaves=True), (False, True, True)),
    ],
)
def test_conditions_are_those_of_the_proxy_pod(proxy: Object, wanted: tuple[bool, bool, bool]) -> None:
    [made] = slices([proxy])
    names = ("ready", "serving", "terminating")
    assert made.get("endpoints")[0]["conditions"] == dict(zip(names, wanted, strict=True))
    published = slices([proxy], service=a_service(publishNotReadyAddresses=True))[0]
    assert published.get("endpoints")[0]["conditions"]["ready"] is True


@pytest.mark.parametrize(
    "proxy",
    [
        a_proxy("unbound", "10.1.0.1", node=""),
        a_proxy("ended", "10.1.0.1", phase="Succeeded"),
        a_proxy("no-address"),
        a_proxy("no-ip", "10.1.0.1.example.com"),
    ],
)
def test_pods_without_a_usable_address_have_no_endpoint(proxy: Object) -> None:
    assert slices([proxy]) == []


@pytest.mark.parametrize("address", ["192.0.2.1", "127.0.0.1", "169.254.169.254", "224.0.0.1", "::ffff:a00:1"])
def test_a_target_cannot_lead_a_service_to_addresses_that_are_not_allowed(address: str) -> None:
    found = endpoints.of_service(a_service(), [a_proxy("a", address), a_proxy("b", "10.1.0.1")], NETWORKS)
    assert found.refused == {address: "a"}
    assert [list(one) for one in found.groups.values()] == [["10.1.0.1"]]
    everything = endpoints.of_service(
        a_service(), [a_proxy("a", "127.0.0.1")], [PodNetwork("", ip_network("0.0.0.0/0"))]
    )
    assert not everything.groups


def test_a_target_cannot_lead_a_service_to_addresses_of_another_target() -> None:
    """Its pods have addresses in its own networks, and in those of any target."""
    networks = [PodNetwork(node, ip_network(one)) for node, one in ((NODE, "10.1.0.0/16"), ("other", "10.2.0.0/16"))]
    networks.append(PodNetwork("", ip_network("10.3.0.0/16")))
    proxies = [a_proxy(name, address) for name, address in (("a", "10.1.0.1"), ("b", "10.2.0.1"), ("c", "10.3.0.1"))]
    found = endpoints.of_service(a_service(), [*proxies, a_proxy("d", "10.2.0.2", node="other")], networks)
    assert found.refused == {"10.2.0.1": "b"}
    assert {group.node: [*held] for group, held in found.groups.items()} == {
        NODE: ["10.1.0.1", "10.3.0.1"],
        "other": ["10.2.0.2"],
    }


def test_delegates_that_the_cluster_selects_itself_are_left_out() -> None:
    proxy = a_proxy("a", "10.1.0.1")
    assert not endpoints.of_service(a_service(), [proxy], NETWORKS, without={NODE}).groups
    assert not endpoints.of_service(a_service(selector={"app": "web"}), [proxy], NETWORKS).groups


def test_a_named_port_is_that_of_the_pod() -> None:
    service = a_service(ports=[{"name": "web", "port": 80, "targetPort": "http"}, {"name": "no", "port": 1}])
    one = a_proxy("a", "10.1.0.1", containers=[{"ports": [{"name": "http", "containerPort": 8001}]}])
    other = a_proxy("b", "10.1.0.2", containers=[{"ports": [{"name": "else", "containerPort": 8002}]}])
    ports = {
        addresses(made)[0]: [port["port"] for port in made.get("ports")]
        for made in slices([one, other], service=service)
    }
    assert ports == {"10.1.0.1": [8001, 1], "10.1.0.2": [1]}


def test_a_hostname_is_kept_for_the_headless_service_of_a_stateful_set() -> None:
    named = a_proxy("web-0", "10.1.0.1", hostname="web-0", subdomain="web")
    [made] = slices([named], service=a_service(clusterIP="None"))
    assert made.get("endpoints")[0]["hostname"] == "web-0"
    assert keys.HEADLESS in made.labels


def test_slices_are_bounded_and_a_change_of_one_endpoint_changes_one_slice() -> None:
    proxies = [a_proxy(f"p{n}", f"10.1.{n // 200}.{n % 200 + 1}") for n in range(250)]
    made = slices(proxies)
    assert sorted(len(addresses(one)) for one in made) == [50, 100, 100]
    assert sorted(slices(proxies, made), key=lambda one: one.name) == sorted(made, key=lambda one: one.name)
    fewer = {one.name: addresses(one) for one in slices(proxies[1:], made)}
    assert sum(addresses(one) != fewer[one.name] for one in made) == 1
    more = {one.name: addresses(one) for one in slices([*proxies, a_proxy("new", "10.1.200.1")], made)}
    assert sum(addresses(one) != more[one.name] for one in made) == 1
    assert slices([], made) == []
