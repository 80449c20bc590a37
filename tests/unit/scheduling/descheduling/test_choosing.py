"""Which pods are moved, which are safe, and which wait."""

import datetime

import pytest

from hansa.kube.objects import Object
from hansa.model import keys, refused_owners
from hansa.scheduling.descheduling.choosing import Later, Move, Safe, decide
from hansa.scheduling.descheduling.limits import Round
from hansa.scheduling.descheduling.policy import Policy

NOW = datetime.datetime(2026, 11, 19, 12, tzinfo=datetime.UTC)
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u1", "controller": True}


def refused(seconds=60, reason="Unschedulable"):
    since = (NOW - datetime.timedelta(seconds=seconds)).isoformat()
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "no node"}
    return {"phase": "Pending", "conditions": [condition | {"lastTransitionTime": since}]}


def a_pod(*, on="vn1", status=None, owners=(OWNER,), namespace="shop", annotations=None, **spec):
    made = (NOW - datetime.timedelta(minutes=10)).isoformat()
    metadata = {"name": "p", "namespace": namespace, "uid": "p1", "creationTimestamp": made}
    metadata |= {"ownerReferences": list(owners), "annotations": annotations or {}}
    where = {"nodeName": on} if on else {}
    return Object.of({"kind": "Pod", "metadata": metadata, "spec": spec | where, "status": status or refused()})


def a_node(name="vn1", ends=None):
    node = Object.of({"kind": "Node", "metadata": {"name": name}})
    for owner, seconds in (ends or {}).items():
        text = refused_owners.with_owner(node, owner, now=NOW, seconds=seconds)
        node = Object.of({"kind": "Node", "metadata": {"name": name, "annotations": {keys.REFUSED_OWNERS: text}}})
    return node


def decided(pod, *nodes, policy=None):
    known = {node.name: node for node in nodes or (a_node(),)}
    return decide(pod, policy or Policy(), known.get, NOW)


def test_a_pod_that_its_cluster_refuses_is_moved_after_a_while():
    found = decided(a_pod())
    assert isinstance(found, Move)
    assert (found.owner, found.refused_by, found.reason) == ("u1", "vn1", "node vn1 cannot schedule it: no node")
    assert decided(a_pod(status=refused(20))) == Later(10)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_pod(owners=()), "no controller"),
        (a_pod(owners=[OWNER | {"kind": "DaemonSet"}]), "DaemonSet"),
        (a_pod(priority=2_000_000_000), "its priority is 2000000000"),
        (a_pod(namespace="kube-system"), "namespace kube-system is excluded"),
        (a_pod(status={"phase": "Running"}), "it is not pending"),
        (a_pod(status={"phase": "Pending"}), "its cluster has not refused it"),
        (a_pod(on="ordinary"), "it is on an ordinary node"),
        (a_pod(on=""), "it is left to the scheduler"),
        (a_pod(annotations={"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}), "it has the annotation"),
        (a_pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]), "it has claims"),
    ],
)
def test_pods_that_are_safe(pod, reason):
    found = decided(pod)
    assert isinstance(found, Safe)
    assert reason in found.reason


def test_a_pod_that_avoids_nodes_is_created_anew_when_one_of_them_is_free_again():
    pod = a_pod(on="", annotations={keys.AVOIDS: "vn1,vn2"})
    assert decided(pod, a_node("vn1", {"u1": 50}), a_node("vn2", {"u1": 20})) == Later(20)
    found = decided(pod, a_node("vn1", {"u1": 50}), a_node("vn2", {"other": 20}))
    assert isinstance(found, Move)
    assert (found.refused_by, found.reason) == ("", "node vn2 accepts pods of this owner again")
    assert decided(a_pod(on="", annotations={keys.AVOIDS: "vn2"}, status=refused(10)), a_node("vn2")) == Later(20)
    gone = decided(pod, a_node("vn1", {"u1": 50}))
    assert isinstance(gone, Move), "a node that is gone cannot be avoided for ever"


def test_a_pod_that_is_pending_for_too_long_is_moved_if_the_policy_says_so():
    pod = a_pod(status={"phase": "Pending"})
    assert isinstance(decided(pod, policy=Policy(oldest_pending_seconds=599)), Move)
    assert decided(pod, policy=Policy(oldest_pending_seconds=630)) == Later(30)


def test_a_round_has_limits_and_ends():
    move = decided(a_pod())
    assert isinstance(move, Move)
    counted = Round(Policy(most_per_node=1), 60)
    assert counted.wait(move, 100) == 0
    counted.count(move, 100)
    assert (counted.wait(move, 110), counted.wait(move, 160)) == (50, 0)
    counted.count(move, 200)
    counted.give_back(move)
    assert counted.wait(move, 210) == 0, "it was not evicted"


def test_owners_are_forgotten_when_their_time_is_over_and_when_there_are_too_many():
    node = a_node(ends={"u1": 10})
    assert refused_owners.of(node, NOW) == {"u1": NOW.timestamp() + 10}
    assert refused_owners.of(node, NOW + datetime.timedelta(seconds=11)) == {}
    many = a_node(ends={f"u{number}": number + 1 for number in range(refused_owners.MOST + 1)})
    assert "u0" not in refused_owners.of(many, NOW)
    assert len(refused_owners.of(many, NOW)) == refused_owners.MOST
    for text in ("[", '{"u1": "soon"}', "{" * 99):
        broken = Object.of({"kind": "Node", "metadata": {"name": "n", "annotations": {keys.REFUSED_OWNERS: text}}})
        assert refused_owners.of(broken, NOW) == {}
