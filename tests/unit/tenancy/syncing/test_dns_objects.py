"""The objects of a tenant's DNS: what every tenant's pods may do, and no way to the names of super clusters."""

import ipaddress

import pytest

from hansa.kube import resources
from hansa.tenancy.syncing import dns_objects
from hansa.tenancy.syncing.dns_objects import DnsSettings, Placed
from tenants import a_link, refusal

RANGE = ipaddress.ip_network("10.224.16.0/20")


def made(*placed, settings=DnsSettings(), domain="cluster.local", services=RANGE):  # noqa: B008
    found = dns_objects.objects(settings, placed, domain=domain, services=services)
    return [(one.kind, one.name, one) for one in found]


def one(kind, *placed, **settings):
    [found] = [obj for of, _, obj in made(*placed, **settings) if of == kind]
    return found


def pod(*placed, **settings):
    template = one("Deployment", *placed, **settings).spec["template"]
    metadata = {"name": "coredns-1", "namespace": "kube-system", "uid": "u", **template["metadata"]}
    return one("Deployment", *placed).with_fields(kind="Pod", spec=template["spec"]).with_metadata(**metadata)


def test_the_service_is_made_last_and_shown_by_cluster_info():
    assert [(kind, name) for kind, name, _ in made(Placed())] == [
        ("ServiceAccount", "coredns"),
        ("ClusterRole", "system:coredns"),
        ("ClusterRoleBinding", "system:coredns"),
        ("ConfigMap", "coredns"),
        ("Deployment", "coredns"),
        ("Service", "kube-dns"),
    ]
    service = one("Service", Placed())
    assert service.labels["kubernetes.io/cluster-service"] == "true"
    assert service.labels["kubernetes.io/name"] == "CoreDNS"


@pytest.mark.parametrize(
    ("services", "address"), [(RANGE, "10.224.16.10"), (ipaddress.ip_network("10.0.0.0/28"), None), (None, None)]
)
def test_its_address_is_the_tenth_of_the_range_if_that_is_not_too_small(services, address):
    service = one("Service", Placed(), services=services)
    assert service.spec.get("clusterIP") == address
    assert "clusterIP" not in dns_objects.without_address(service).spec


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_every_tenant_may_run_it(level):
    assert refusal(pod(Placed()), a_link(pod_security=level)) == ""


def test_names_of_the_cluster_and_addresses_are_not_asked_of_others():
    text = dns_objects.corefile("blue.local", "/etc/resolv.conf")
    assert text.startswith("blue.local in-addr.arpa ip6.arpa {")
    assert "fallthrough" not in text
    assert "cluster.local {\n    template ANY ANY {\n        rcode NXDOMAIN" in text
    assert "forward . /etc/resolv.conf" in text
    assert "cluster.local {\n    template" not in dns_objects.corefile("cluster.local", "/etc/resolv.conf")


def test_without_other_servers_no_name_outside_exists():
    assert "forward" not in dns_objects.corefile("cluster.local", "")


def test_the_image_is_a_setting():
    [container] = pod(Placed(), settings=DnsSettings(image="example.com/coredns:2")).spec["containers"]
    assert container["image"] == "example.com/coredns:2"


def test_in_a_pool_each_super_cluster_has_a_deployment_and_all_have_one_service():
    deployments = {name: obj for kind, name, obj in made(Placed("r1"), Placed("r2")) if kind == "Deployment"}
    assert set(deployments) == {"coredns-r1", "coredns-r2"}
    spec, service = deployments["coredns-r1"].spec, one("Service", Placed("r1"))
    labels = spec["template"]["metadata"]["labels"]
    assert spec["template"]["metadata"]["annotations"] == {"scheduler.tenancy.x-k8s.io/superCluster": "r1"}
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert service.spec["selector"].items() <= labels.items()
    assert spec["selector"] != deployments["coredns-r2"].spec["selector"]
    assert resources.DEPLOYMENTS.kind == deployments["coredns-r1"].kind
