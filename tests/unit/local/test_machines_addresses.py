"""The address plan: addresses of nodes and pods, all distinct."""

import itertools
from ipaddress import IPv4Address, IPv4Network

import pytest

from hansa.local.machines import addresses
from hansa.local.machines.addresses import Networks


def test_a_cluster_has_its_slot_in_all_its_addresses() -> None:
    third = Networks(3)
    assert third.control_plane == IPv4Address("10.0.3.1")
    assert third.host(2) == IPv4Address("10.0.3.3")
    assert third.node_pods(2) == IPv4Network("10.103.2.0/24")
    assert third.services == IPv4Network("10.3.0.0/16")
    assert third.api_service == IPv4Address("10.3.0.1")
    assert third.dns == IPv4Address("10.3.0.10")


def test_no_two_networks_of_all_clusters_overlap() -> None:
    clusters = [Networks(slot) for slot in addresses.SLOTS]
    networks = [network for c in clusters for network in (c.hosts, c.pods, c.services)]
    assert not [pair for pair in itertools.combinations(networks, 2) if pair[0].overlaps(pair[1])]


def test_every_host_and_the_router_have_an_address_of_their_own() -> None:
    indexes = [addresses.CONTROL_PLANE, *addresses.NODES]
    hosts = [Networks(slot).host(index) for slot in addresses.SLOTS for index in indexes]
    assert len({addresses.ROUTER, *hosts}) == len(hosts) + 1
    assert all(host in addresses.HOSTS for host in hosts)


def test_the_pods_of_a_node_are_among_those_of_its_cluster_and_of_no_other_node() -> None:
    cluster = Networks(100)
    nodes = [cluster.node_pods(index) for index in addresses.NODES]
    assert len(set(nodes)) == len(nodes)
    assert all(node.subnet_of(cluster.pods) for node in nodes)


@pytest.mark.parametrize("slot", [0, 101, -1])
def test_a_slot_outside_the_plan_is_refused(slot: int) -> None:
    with pytest.raises(ValueError, match=f"slot {slot}"):
        Networks(slot)


@pytest.mark.parametrize("index", [-1, 254])
def test_a_host_outside_the_plan_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=f"host {index}"):
        Networks(1).host(index)


def test_a_control_plane_has_no_pods() -> None:
    with pytest.raises(ValueError, match="node 0"):
        Networks(1).node_pods(addresses.CONTROL_PLANE)
