"""Network namespaces of nodes: connectivity, and complete removal."""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import real_machine
from hansa.local.machines.addresses import CONTROL_PLANE, Networks
from hansa.local.machines.command import run
from hansa.local.machines.host_network import NAMESPACES, HostNetwork
from hansa.programs.relay import NetnsAddress
from real_machine import host, listening

A, B = Networks(1), Networks(2)
# An address that the Internet's documents use as an example; no computer has it.
OUTSIDE = "192.0.2.1"
NO_WAY = rf"Errno ({errno.EHOSTUNREACH}|{errno.ENETUNREACH})"


@pytest.fixture(autouse=True)
def capable(tmp_path: Path) -> None:
    real_machine.tools(tmp_path)


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[HostNetwork]:
    fabric = HostNetwork(tmp_path)
    yield fabric
    for cluster in ("a", "b"):
        await fabric.remove(cluster)


async def add_pod(fabric: HostNetwork, cluster: str, networks: Networks) -> NetnsAddress:
    """An address of the first node's pods, on the node itself: to the network it is a pod."""
    address = networks.node_pods(1)[5]
    await run("ip", "-n", fabric.host(cluster, 1), "address", "replace", f"{address}/32", "dev", "lo")
    return NetnsAddress(fabric.host(cluster, 1), str(address), 80)


async def caller(source: NetnsAddress, target: NetnsAddress) -> str:
    """Whom the target sees when the source connects to it."""
    loop = asyncio.get_running_loop()
    with listening(target) as server, source.open() as client:
        client.bind((source.address, 0))
        async with asyncio.timeout(60):
            await loop.sock_connect(client, (target.address, target.port))
            accepted, (address, _) = await loop.sock_accept(server)
        accepted.close()
    return str(address)


async def test_every_host_reaches_every_host(fabric: HostNetwork) -> None:
    await fabric.ensure("a", 1, is_joined=False, nodes=[1])
    await fabric.ensure("b", 2, is_joined=False)
    control_plane, node, other = host(fabric, "a", A), host(fabric, "a", A, index=1), host(fabric, "b", B)
    for source, target in ((node, control_plane), (control_plane, node), (node, other), (other, control_plane)):
        assert await caller(source, target) == source.address


async def test_pods_of_joined_clusters_see_each_other_by_their_own_addresses(fabric: HostNetwork) -> None:
    await fabric.ensure("a", 1, is_joined=True, nodes=[1])
    await fabric.ensure("b", 2, is_joined=True, nodes=[1])
    pod_a, pod_b = await add_pod(fabric, "a", A), await add_pod(fabric, "b", B)
    assert await caller(pod_a, pod_b) == pod_a.address
    assert await caller(pod_b, pod_a) == pod_b.address
    assert await caller(host(fabric, "a", A), pod_b) == str(A.control_plane)


@pytest.mark.parametrize("is_one_joined", [False, True])
async def test_pods_of_clusters_that_are_not_joined_reach_only_each_others_hosts(
    fabric: HostNetwork, is_one_joined: bool
) -> None:
    await fabric.ensure("a", 1, is_joined=is_one_joined, nodes=[1])
    await fabric.ensure("b", 2, is_joined=False, nodes=[1])
    pod_a, pod_b = await add_pod(fabric, "a", A), await add_pod(fabric, "b", B)
    for source in (pod_a, host(fabric, "a", A)):
        with pytest.raises(OSError, match=NO_WAY):
            await caller(source, pod_b)
    assert await caller(pod_a, host(fabric, "b", B)) == pod_a.address


async def test_a_cluster_can_be_joined_and_parted_later(fabric: HostNetwork) -> None:
    await fabric.ensure("b", 2, is_joined=True, nodes=[1])
    await fabric.ensure("a", 1, is_joined=False, nodes=[1])
    pod_a, pod_b = await add_pod(fabric, "a", A), await add_pod(fabric, "b", B)
    await fabric.ensure("a", 1, is_joined=True, nodes=[1])
    assert await caller(pod_a, pod_b) == pod_a.address
    await fabric.ensure("a", 1, is_joined=False, nodes=[1])
    with pytest.raises(OSError, match=NO_WAY):
        await caller(pod_a, pod_b)


async def test_pods_of_one_cluster_reach_each_other_across_nodes(fabric: HostNetwork) -> None:
    await fabric.ensure("a", 1, is_joined=False, nodes=[1, 2])
    pod = await add_pod(fabric, "a", A)
    assert await caller(host(fabric, "a", A, index=2), pod) == str(A.host(2))
    assert await caller(host(fabric, "a", A), pod) == str(A.control_plane)


async def test_there_is_no_way_out_of_the_machine(fabric: HostNetwork) -> None:
    await fabric.ensure("a", 1, is_joined=True, nodes=[1])
    for name in (fabric.router, fabric.host("a", CONTROL_PLANE), fabric.host("a", 1)):
        with NetnsAddress(name, "", 0).open() as client, pytest.raises(OSError, match=NO_WAY):
            async with asyncio.timeout(60):
                await asyncio.get_running_loop().sock_connect(client, (OUTSIDE, 80))


async def test_two_state_folders_never_meet(tmp_path: Path) -> None:
    one, two = HostNetwork(tmp_path / "one"), HostNetwork(tmp_path / "two")
    assert one.prefix != two.prefix
    try:
        await one.ensure("a", 1, is_joined=True)
        await two.ensure("a", 1, is_joined=True)
        await one.remove("a")
        assert await caller(host(two, "a", A), host(two, "a", A)) == str(A.control_plane)
    finally:
        await one.remove("a")
        await two.remove("a")


@pytest.mark.parametrize("broken", ["namespace", "file", "cable", "filter", "route"])
async def test_a_network_that_something_broke_is_repaired(fabric: HostNetwork, broken: str) -> None:
    await fabric.ensure("a", 1, is_joined=False, nodes=[1])
    node = fabric.host("a", 1)
    match broken:
        case "namespace":
            await run("ip", "netns", "delete", node)
        case "file":
            await run("umount", str(NAMESPACES / node))
        case "cable":
            await run("ip", "-n", node, "link", "delete", "eth0")
        case "filter":
            await run("nsenter", f"--net={NAMESPACES / fabric.router}", "nft", "flush", "ruleset")
        case "route":
            await run("ip", "-n", fabric.router, "route", "flush", "dev", "h1-1")
    await fabric.ensure("a", 1, is_joined=False, nodes=[1])
    assert await caller(host(fabric, "a", A), await add_pod(fabric, "a", A)) == str(A.control_plane)


async def test_nothing_of_a_network_is_left_or_seen_outside_it(fabric: HostNetwork, tmp_path: Path) -> None:
    before = await real_machine.traces(tmp_path)
    await fabric.ensure("a", 1, is_joined=True, nodes=[1, 2])
    during = await real_machine.traces(tmp_path)
    for unchanged in ("links", "addresses", "routes", "filters", "settings"):
        assert during[unchanged] == before[unchanged]
    await fabric.remove_host("a", 2)
    await fabric.remove("a")
    await fabric.remove("a")
    assert await real_machine.traces(tmp_path) == before
