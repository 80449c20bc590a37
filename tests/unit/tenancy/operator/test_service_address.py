"""The addresses of an API server behind a Service: of a node, of a load balancer."""

import pytest

from hansa.kube.objects import Object
from hansa.tenancy.api import BadVirtualCluster
from hansa.tenancy.operator import service_address
from hansa.tenancy.operator.service_address import Access


def node(name, *, ready="True", address="10.0.0.1"):
    conditions = [{"type": "Ready", "status": ready}]
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
    status = {"conditions": conditions, "addresses": addresses}
    return Object.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status})


def service(kind="ClusterIP", **status):
    spec = {"type": kind, "clusterIP": "10.0.0.9", "ports": [{"port": 6443}]}
    metadata = {"name": "apiserver-svc", "namespace": "root"}
    return Object.of({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": status})


def test_a_node_port_is_reached_at_the_first_ready_node():
    nodes = [node("c", address="10.0.0.3"), node("a", ready="Unknown"), node("b", address="10.0.0.2")]
    assert service_address.node_address(nodes) == "10.0.0.2"
    assert service_address.node_address([node("a", ready="False")]) == ""


@pytest.mark.parametrize(
    ("ingress", "address"),
    [([{"ip": "192.0.2.1"}], "192.0.2.1"), ([{"hostname": "lb.example.com"}], "lb.example.com"), ([], ""), (None, "")],
)
def test_a_load_balancer_has_an_address_or_a_name(ingress, address):
    found = service(loadBalancer={"ingress": ingress} if ingress is not None else {})
    assert service_address.ingress_address(found) == address


@pytest.mark.parametrize(
    ("access", "found", "url"),
    [
        (Access.SERVICE, service(), "https://10.0.0.9:6443"),
        (Access.LOAD_BALANCER, service("LoadBalancer"), None),
        (
            Access.LOAD_BALANCER,
            service("LoadBalancer", loadBalancer={"ingress": [{"ip": "2001:db8::1"}]}),
            "https://[2001:db8::1]:6443",
        ),
    ],
)
async def test_the_address_in_kubeconfigs_is_that_of_the_service_or_of_its_balancer(access, found, url):
    assert await service_address.find(None, found, access) == url


@pytest.mark.parametrize(("access", "needed"), [(Access.NODE_PORT, "NodePort"), (Access.LOAD_BALANCER, "LoadBalancer")])
async def test_a_service_of_another_type_is_refused_with_the_flag(access, needed):
    sentence = f"has type ClusterIP; --kubeconfig-address={access} needs {needed}"
    with pytest.raises(BadVirtualCluster, match=sentence):
        await service_address.find(None, service(), access)
