"""Cluster IPs and node ports of a tenant's Services: requested below, replaced if taken, and then synced up."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from tenants import MODE, a_service, desired, follow, upper_patches

SERVICES = resources.SERVICES
ADDRESS = {
    "clusterIP": "10.32.0.5",
    "clusterIPs": ["10.32.0.5"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
YIELDS = MODE.rules[SERVICES].fallback


def ports(*node_ports: int) -> list[dict[str, Any]]:
    return [{"name": f"n{i}", "port": 80 + i, "protocol": "TCP", "nodePort": one} for i, one in enumerate(node_ports)]


def a_door(*node_ports: int, **annotations: str) -> Object:
    """A tenant's Service with node ports."""
    made = a_service("web", type="NodePort", ports=ports(*node_ports))
    return made.with_metadata(annotations=annotations, resource_version="7")


def given(upper: Object, *node_ports: int) -> Object:
    """Its copy, with the node ports that the super cluster gave it."""
    lower = desired(upper, resource=SERVICES)
    return lower.with_fields(spec=lower.spec | {"ports": ports(*node_ports)})


def test_a_copy_asks_for_the_node_ports_of_its_tenant() -> None:
    lower = desired(a_door(30001, 30002), resource=SERVICES)
    assert lower.spec["ports"] == ports(30001, 30002)
    assert lower.annotations[keys.NODE_PORTS] == "80/TCP=30001,81/TCP=30002"


def test_node_ports_that_agree_need_no_patch_on_either_side() -> None:
    upper = a_door(30001)
    assert follow(given(upper, 30001), upper, SERVICES) == upper_patches(upper, given(upper, 30001), SERVICES) == []


def test_node_ports_chosen_by_the_super_cluster_are_synced_up_and_not_requested_again() -> None:
    upper = a_door(30001, 30002)
    lower = given(upper, 31111, 30002)
    assert follow(lower, upper, SERVICES) == []
    [part] = upper_patches(upper, lower, SERVICES)
    assert part.patch == {
        "metadata": {"annotations": {keys.SUPER_NODE_PORTS: "80/TCP=31111,81/TCP=30002"}, "resourceVersion": "7"},
        "spec": {"ports": ports(31111, 30002)},
    }


def test_noted_node_ports_are_synced_up_again_until_the_upper_service_has_them() -> None:
    noted = {keys.SUPER_NODE_PORTS: "80/TCP=31111"}
    [part] = upper_patches(a_door(30001, **noted), given(a_door(30001), 31111), SERVICES)
    assert part.patch["spec"] == {"ports": ports(31111)}
    assert upper_patches(a_door(31111, **noted), given(a_door(31111), 31111), SERVICES) == []


def test_an_outdated_node_port_annotation_is_corrected() -> None:
    upper = a_door(30001, **{keys.SUPER_NODE_PORTS: "80/TCP=31111"})
    [part] = upper_patches(upper, given(upper, 30001), SERVICES)
    assert part.patch == {"metadata": {"annotations": {keys.SUPER_NODE_PORTS: "80/TCP=30001"}}}


def test_a_node_port_changed_in_the_upper_service_is_requested_in_the_lower_one_before_anything_is_synced_up() -> None:
    lower, upper = given(a_door(30001), 30001), a_door(30009)
    [part] = follow(lower, upper, SERVICES)
    assert part.patch["spec"] == {"ports": ports(30009)}
    assert part.patch["metadata"]["annotations"][keys.NODE_PORTS] == "80/TCP=30009"
    assert upper_patches(upper, lower, SERVICES) == []


@pytest.mark.parametrize("field", ["spec.clusterIPs", "spec.clusterIP", "spec.clusterIPs[0]"])
def test_an_address_that_is_taken_is_left_to_the_super_cluster(field: str) -> None:
    spec = {**ADDRESS, "ports": ports(30001)}
    assert YIELDS(spec, [field], ()) == {"ipFamilyPolicy": "SingleStack", "ports": ports(30001)}


def test_node_ports_that_are_taken_are_left_to_the_super_cluster() -> None:
    spec = {**ADDRESS, "ports": ports(30001, 30002)}
    bare = [{name: value for name, value in one.items() if name != "nodePort"} for one in spec["ports"]]
    assert YIELDS(spec, ["spec.ports[1].nodePort"], ()) == {**ADDRESS, "ports": bare}


def test_an_address_or_node_port_of_a_service_being_deleted_is_waited_for() -> None:
    spec = {**ADDRESS, "ports": ports(30001)}
    for field in ("spec.clusterIPs", "spec.ports[0].nodePort"):
        assert YIELDS(spec, [field], [a_service("old", **spec)]) is None
        assert YIELDS(spec, [field], [a_service("old", clusterIP="10.32.0.9", ports=ports(30009))]) is not None


def test_nothing_else_will_do_where_something_else_is_refused() -> None:
    spec = {**ADDRESS, "ports": ports(30001)}
    assert YIELDS(spec, ["spec.selector", "metadata.name"], ()) is None
    assert YIELDS({"clusterIP": "None"}, ["spec.ports[0].nodePort"], ()) is None
    assert YIELDS({"ports": [{"port": 80}]}, ["spec.ports[0].nodePort"], ()) is None
