"""Amounts of copies, and which limit one more would exceed."""

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import limits
from hansa.model.limits import Amounts, Limit, Limits, Room


def an_object(kind="ConfigMap", **fields):
    return Object.of({"kind": kind, "metadata": {"name": "a", "labels": {"app": "web"}}, **fields})


def test_the_bytes_of_an_object_are_those_of_its_labels_and_fields_without_the_status():
    assert an_object().size == len("appweb")
    assert an_object(data={"k": "v"}, status={"phase": "x" * 100}).size == len('appweb{"k":"v"}')


@pytest.mark.parametrize(
    ("spec", "ports", "balancers"),
    [
        ({"type": "ClusterIP", "ports": [{}, {}]}, 0, 0),
        ({"type": "NodePort", "ports": [{}, {}]}, 2, 0),
        ({"type": "LoadBalancer", "ports": [{}]}, 1, 1),
        ({"type": "LoadBalancer", "ports": [{}], "allocateLoadBalancerNodePorts": False}, 0, 1),
        ({"type": "LoadBalancer", "ports": [{}], "externalTrafficPolicy": "Local"}, 2, 1),
        ({"type": "LoadBalancer"}, 0, 1),
    ],
)
def test_a_service_has_node_ports_and_balancers_by_its_type(spec, ports, balancers):
    found = limits.amounts(resources.SERVICES, an_object("Service", spec=spec))
    assert (found.objects, found.node_ports, found.load_balancers) == (1, ports, balancers)


def test_pods_and_namespaces_count_as_such():
    assert limits.amounts(resources.PODS, an_object("Pod")).pods == 1
    assert limits.amounts(resources.NAMESPACES, an_object("Namespace")).namespaces == 1
    assert limits.amounts(resources.PODS, None) == limits.NOTHING


@pytest.mark.parametrize(
    ("phase", "requested"), [("Running", (1500, 2**30)), ("Succeeded", (0, 0)), ("Failed", (0, 0))]
)
def test_requests_of_pods_count_until_they_are_finished(phase, requested):
    wanted = [{"name": str(n), "resources": {"requests": {"cpu": "750m", "memory": "512Mi"}}} for n in range(2)]
    found = limits.amounts(resources.PODS, an_object("Pod", spec={"containers": wanted}, status={"phase": phase}))
    assert (found.cpu, found.memory) == requested


@pytest.mark.parametrize(
    ("status", "cores"),
    [
        ({"phase": "Running", "message": '"phase":"Failed"'}, 1000),
        ({"phase": "Running", "steps": [{"phase": "Failed"}]}, 1000),
        ({"phase": "Failed"}, 0),
    ],
)
def test_only_the_phase_of_a_pod_finishes_it_wherever_else_the_word_is(status, cores):
    spec = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}
    assert limits.amounts(resources.PODS, an_object("Pod", spec=spec, status=status)).cpu == cores


def test_an_eighth_of_bytes_and_objects_is_kept_for_what_is_in_use():
    most = Limits(bytes=800, objects=8, pods=8)
    for is_used, wanted in ((False, Limit.OBJECTS), (True, None)):
        assert Room(most, Amounts(objects=7), is_used).exceeded(Amounts(objects=1)) is wanted
    assert Room(most, Amounts(pods=7), is_used=False).exceeded(Amounts(pods=1)) is None
    assert Room(most, Amounts(bytes=700)).exceeded(Amounts(bytes=101)) is Limit.BYTES


def test_what_does_not_grow_exceeds_no_limit_even_if_it_was_lowered():
    assert Room(Limits(bytes=1), Amounts(bytes=100)).exceeded(Amounts(bytes=-5)) is None


def test_later_limits_win_and_invalid_ones_are_named():
    merged, invalid = limits.merged(Limits(), {"bytes": "1Mi", "pods": 5}, {"pods": "7"})
    assert (merged.bytes, merged.pods, merged.objects, invalid) == (2**20, 7, Limits().objects, [])
    assert limits.merged(Limits(), {"cpu": "1500m", "memory": "1Gi"})[0][-3:-1] == (1500, 2**30)
    for given, reason in (({"pods": -1}, "-1 is negative"), ({"cores": 1}, "cores"), ({"bytes": "lots"}, "lots")):
        same, [message] = limits.merged(Limits(), given)
        assert same == Limits()
        assert reason in message


def test_a_message_names_the_limit_its_use_and_the_remedy():
    room = Room(Limits(bytes=2**20), Amounts(bytes=2**19), is_used=False)
    message = limits.message(Limit.BYTES, room, Amounts(bytes=2**20), "super")
    assert message == (
        "the tenant's limit of bytes in super is reached: 0.5 MiB of 1.0 MiB are used, 1/8 is reserved for objects that"
        " pods reference, and this object needs 1.0 MiB; delete other objects, or have spec.limits.bytes of the"
        " VirtualCluster raised"
    )
