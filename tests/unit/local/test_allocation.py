"""Allocation of slots and ports."""

import socket
from contextlib import contextmanager

import pytest

from hansa.local import allocation
from hansa.local.spec import ClusterSpec
from hansa.programs import components, ports
from hansa.runtime.errors import HansaError


def allocate(name, *, others=(), former=None, listening=(), **fields):
    return allocation.allocate(
        ClusterSpec(name, **fields), others=others, former=former, listening=listening, seed="a test's state folder"
    )


@contextmanager
def taken(port):
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((ports.LOOPBACK, port))
        server.listen()
        yield


def test_two_clusters_share_no_slot_and_no_port():
    a = allocate("a")
    b = allocate("b", others=[a])
    assert a.slot != b.slot
    assert not set(a.ports.values()) & set(b.ports.values())


def test_ports_lie_outside_the_kernels_range_for_outgoing_connections():
    assert all(20000 <= port < 30000 for port in allocate("a").ports.values())


def test_a_cluster_keeps_its_slot_and_ports():
    former = allocate("a")
    assert allocate("a", former=former) == former


def test_a_free_slot_is_used_again():
    a, b = allocate("a"), allocate("b", others=[allocate("a")])
    assert allocate("c", others=[b]).slot == a.slot


def test_a_port_that_another_program_took_is_replaced():
    former = allocate("a")
    with taken(former.ports[components.APISERVER]):
        now = allocate("a", former=former)
    assert now.ports[components.APISERVER] != former.ports[components.APISERVER]
    assert now.ports[components.SCHEDULER] == former.ports[components.SCHEDULER]


def test_a_port_on_which_our_own_process_listens_is_kept():
    former = allocate("a")
    with taken(former.ports[components.APISERVER]):
        assert allocate("a", former=former, listening={components.APISERVER}) == former


def test_a_requested_port_is_used_or_refused():
    free = allocate("a").ports[components.APISERVER]
    assert allocate("a", port=free).ports[components.APISERVER] == free
    with (
        taken(free),
        pytest.raises(ports.PortUnavailable, match=f"port {free} on 127.0.0.1 is taken by another program"),
    ):
        allocate("a", port=free)


def test_real_nodes_cannot_be_added_to_a_cluster_without():
    former = allocate("a")
    with pytest.raises(HansaError, match="cluster a was created without real nodes"):
        allocate("a", former=former, real_nodes=1)


def test_allocation_fails_when_all_slots_are_used():
    others = []
    for index in range(100):
        others.append(allocate(f"c{index}", others=others))
    with pytest.raises(HansaError, match="there are 100 local clusters already"):
        allocate("one-too-many", others=others)
