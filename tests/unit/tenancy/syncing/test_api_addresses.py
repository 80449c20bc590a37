"""Which Services of a root namespace a tenant's URL leads to."""

import pytest

from hansa.kube.objects import Object
from hansa.tenancy.syncing import api_addresses

INSIDE = {"clusterIPs": ["10.0.0.7"], "ports": [{"port": 6443}]}
NODE_PORT = {"clusterIPs": ["10.0.0.8"], "ports": [{"port": 6443, "nodePort": 30443}]}


@pytest.mark.parametrize(
    ("spec", "host", "port", "leads"),
    [
        (INSIDE, "10.0.0.7", 6443, True),
        (INSIDE, "192.0.2.1", 6443, False),
        (INSIDE, "192.0.2.1", None, False),
        (NODE_PORT, "192.0.2.1", 30443, True),
        (NODE_PORT, "192.0.2.1", None, False),
    ],
    ids=["its address", "another address", "no port", "its node port", "no port, but a node port"],
)
def test_a_url_leads_to_a_service_by_address_or_node_port(spec, host, port, leads):
    service = Object.of({"metadata": {"name": "any"}, "spec": spec})
    assert api_addresses.leads_to(service, frozenset({host}), port) is leads
