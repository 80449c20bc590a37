"""A manifest that a person wrote has the requests and ports that the API server would store."""

import pytest

from hansa.kube.language import quantity
from hansa.kube.objects import Malformed, Object
from hansa.model import pod_manifest, requests
from hansa.scheduling import host_ports
from hansa.scheduling.host_ports import HostPort


def stored(**spec):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"}, "spec": spec}
    return Object.of(pod_manifest.as_stored(pod))


def cpu(pod):
    return requests.of_pod(pod).get("cpu", 0) / quantity.UNIT


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({"requests": {"cpu": 2}}, 2),
        ({"requests": {"cpu": 0.5}}, 0.5),
        ({"limits": {"cpu": 3}}, 3),
        ({"limits": {"cpu": 3}, "requests": None}, 3),
        ({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}, 1),
        ({}, 0),
    ],
)
def test_numbers_are_quantities_and_limits_are_the_default_of_requests(resources, wanted):
    assert cpu(stored(containers=[{"name": "c", "resources": resources}])) == wanted


def test_limits_of_the_pod_are_the_default_where_no_container_requests_the_resource():
    whole = {"limits": {"cpu": 4}}
    assert cpu(stored(resources=whole, containers=[{"name": "c"}])) == 4
    assert cpu(stored(resources=whole, containers=[{"name": "c", "resources": {"requests": {"cpu": 1}}}])) == 1


def test_ports_on_the_network_of_the_host_are_host_ports():
    containers = [{"name": "c", "ports": [{"containerPort": 80}]}]
    assert host_ports.of_pod(stored(hostNetwork=True, containers=containers)) == {HostPort(80)}
    assert host_ports.of_pod(stored(containers=containers)) == frozenset()


@pytest.mark.parametrize("spec", [{"containers": "x"}, {"containers": [{"resources": {"requests": {"cpu": []}}}]}])
def test_a_field_of_a_wrong_type_is_reported(spec):
    with pytest.raises(Malformed, match=r"spec of Pod shop/new is malformed: Expected"):
        requests.of_pod(stored(**spec))
