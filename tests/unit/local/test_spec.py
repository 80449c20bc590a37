"""Validation of the specification of a local cluster."""

import pytest

from hansa.local import spec
from hansa.local.spec import ClusterSpec, InvalidSpec, NodeShape, Taint


@pytest.mark.parametrize("name", ["a", "r1", "super-cluster-1", "a" * 30])
def test_names_that_can_be_part_of_other_names_are_accepted(name):
    spec.check(ClusterSpec(name))


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a/b", "..", "a" * 31, "é", "a b"])
def test_other_names_are_refused(name):
    with pytest.raises(InvalidSpec, match="is not a valid cluster name: use up to 30"):
        spec.check(ClusterSpec(name))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (ClusterSpec("a", nodes=-1), "--nodes -1: must not be negative"),
        (ClusterSpec("a", real_nodes=-2), "--real-nodes -2"),
        (ClusterSpec("a", real_nodes=254), "--real-nodes 254: at most 253 are possible"),
        (ClusterSpec("a", port=0), "--port 0"),
        (ClusterSpec("a", port=65536), "--port 65536"),
        (ClusterSpec("a", shape=NodeShape(cpu="many")), "--node-cpu: .*many"),
        (ClusterSpec("a", shape=NodeShape(memory="12GG")), "--node-memory: .*12GG"),
        (ClusterSpec("a", shape=NodeShape(pods="-1")), "--node-pods -1: must not be negative"),
    ],
)
def test_an_invalid_value_is_refused_with_flag_and_value(given, message):
    with pytest.raises(InvalidSpec, match=message):
        spec.check(given)


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        ("gpu=yes:NoSchedule", Taint("gpu", "NoSchedule", "yes")),
        ("gpu:NoExecute", Taint("gpu", "NoExecute")),
        ("example.com/x=:PreferNoSchedule", Taint("example.com/x", "PreferNoSchedule")),
    ],
)
def test_taints_are_read_in_kubectls_form(text, taint):
    assert Taint.parse(text) == taint


@pytest.mark.parametrize(
    "text", ["gpu", "gpu=a", "=a:NoSchedule", "gpu=a:Never", "g pu:NoSchedule", "a=b=c:NoSchedule"]
)
def test_other_taints_are_refused(text):
    with pytest.raises(InvalidSpec, match="taint"):
        Taint.parse(text)


def test_labels_and_flags_are_read_in_their_forms():
    assert spec.label("zone=a") == ("zone", "a")
    assert spec.label("example.com/zone=") == ("example.com/zone", "")
    assert spec.flag("kube-apiserver=--v=4") == ("kube-apiserver", "--v=4")


@pytest.mark.parametrize("text", ["zone", "=a", "zo ne=a", "zone=a b"])
def test_other_labels_are_refused(text):
    with pytest.raises(InvalidSpec, match="node label"):
        spec.label(text)


@pytest.mark.parametrize("text", ["kube-apiserver", "kube-apiserver=v=4", "etc=--v=4", "--v=4"])
def test_other_flags_are_refused(text):
    with pytest.raises(InvalidSpec, match="flag"):
        spec.flag(text)
