"""Numbers that no two clusters share."""

import socket
from contextlib import contextmanager

import pytest

from hansa.local import allotment, components, ports
from hansa.local.spec import ClusterSpec
from hansa.runtime.errors import HansaError


def allot(name, *, others=(), former=None, listening=(), **wishes):
    return allotment.allot(
        ClusterSpec(name, **wishes), others=others, former=former, listening=listening, seed="a test's state folder"
    )


@contextmanager
def taken(port):
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((ports.LOOPBACK, port))
        server.listen()
        yield


def test_two_clusters_share_no_number():
    a = allot("a")
    b = allot("b", others=[a])
    assert a.slot != b.slot
    assert not set(a.ports.values()) & set(b.ports.values())


def test_ports_lie_outside_the_kernels_range_for_outgoing_connections():
    assert all(20000 <= port < 30000 for port in allot("a").ports.values())


def test_a_cluster_keeps_its_numbers():
    former = allot("a")
    assert allot("a", former=former) == former


def test_a_free_slot_is_used_again():
    a, b = allot("a"), allot("b", others=[allot("a")])
    assert allot("c", others=[b]).slot == a.slot


def test_a_port_that_a_stranger_took_is_given_up():
    former = allot("a")
    with taken(former.ports[components.APISERVER]):
        now = allot("a", former=former)
    assert now.ports[components.APISERVER] != former.ports[components.APISERVER]
    assert now.ports[components.SCHEDULER] == former.ports[components.SCHEDULER]


def test_a_port_on_which_our_own_process_listens_is_kept():
    former = allot("a")
    with taken(former.ports[components.APISERVER]):
        assert allot("a", former=former, listening={components.APISERVER}) == former


def test_a_port_that_the_user_demands_is_given_or_refused():
    free = allot("a").ports[components.APISERVER]
    assert allot("a", port=free).ports[components.APISERVER] == free
    with taken(free), pytest.raises(ports.NoPort, match=f"port {free} on 127.0.0.1 is taken by another program"):
        allot("a", port=free)


def test_a_cluster_cannot_move_into_namespaces_while_it_lives():
    former = allot("a")
    with pytest.raises(HansaError, match="cluster a was made without real nodes"):
        allot("a", former=former, real_nodes=1)


def test_there_is_an_end_to_slots():
    others = []
    for index in range(100):
        others.append(allot(f"c{index}", others=others))
    with pytest.raises(HansaError, match="there are 100 local clusters already"):
        allot("one-too-many", others=others)
