"""`kubectl vc` without a cluster: manifests, output, and addresses of API servers."""

import argparse
from datetime import timedelta

import pytest

from hansa.cli.kubectl_vc import kubeconfig, main, manifest, printing, waiting
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime.errors import HansaError
from hansa.tenancy import api

SAMPLE = b"""\
apiVersion: tenancy.x-k8s.io/v1alpha1
kind: VirtualCluster
metadata:
  labels:
    controller-tools.k8s.io: "1.0"
  name: vc-sample-1
spec:
  clusterDomain: cluster.local
  clusterVersionName: cv-sample-np
  opaqueMetaPrefixes:
  - tenancy.x-k8s.io
"""


def test_a_sample_of_upstream_is_read():
    found = manifest.parse(SAMPLE, "sample.yaml")
    assert (found.name, found.spec["clusterVersionName"]) == ("vc-sample-1", "cv-sample-np")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "x.yaml must contain one VirtualCluster, but contains 0 documents"),
        (SAMPLE + b"---\n" + SAMPLE, "x.yaml must contain one VirtualCluster, but contains 2 documents"),
        (b"a: [", "x.yaml is not YAML at line 1"),
        (
            b"apiVersion: v1\nkind: Pod\n",
            'must contain a VirtualCluster of tenancy.x-k8s.io/v1alpha1, but has kind "Pod" and apiVersion "v1"',
        ),
        (SAMPLE.replace(b"  name: vc-sample-1\n", b""), "the VirtualCluster in x.yaml has no metadata.name"),
    ],
)
def test_what_is_no_virtual_cluster_is_refused_with_a_sentence(text, sentence):
    with pytest.raises(HansaError) as caught:
        manifest.parse(text, "x.yaml")
    assert sentence in str(caught.value)


async def test_an_unreachable_url_is_reported():
    with pytest.raises(HansaError, match=r"cannot fetch http://127.0.0.1:1/vc.yaml: .*refused"):
        await manifest.read("http://127.0.0.1:1/vc.yaml")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("1h30m", 5400), ("2.5", 2.5)])
def test_durations_are_as_kubectl_writes_them(text, seconds):
    assert main.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "m", "5 m", "-5s"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
        main.duration(text)


@pytest.mark.parametrize(
    "words",
    [
        ["--context", "c", "-n", "ns", "--kubeconfig", "k", "get", "one"],
        ["get", "one", "--context", "c", "-n", "ns", "--kubeconfig", "k"],
    ],
)
def test_flags_of_the_connection_stand_before_or_after_the_command(words):
    read = main.parser().parse_args(words)
    assert (read.context, read.namespace, str(read.kubeconfig), read.name) == ("c", "ns", "k", "one")


def test_help_shows_the_form_of_a_timeout_and_no_path_of_this_machine(capsys):
    with pytest.raises(SystemExit):
        main.parser().parse_args(["exec", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "time limit of waits, such as 90s, 5m or 1h30m (default 5m)" in shown
    assert "(default ~/.kube/vc)" in shown


def test_a_command_after_two_dashes_keeps_its_flags():
    read = main.parser().parse_args(["exec", "one", "--", "kubectl", "get", "ns", "-o", "name"])
    assert read.command == ["kubectl", "get", "ns", "-o", "name"]


@pytest.mark.parametrize(
    ("name", "where"), [("one", NamespacedName("ns", "one")), ("other/one", NamespacedName("other", "one"))]
)
def test_a_name_may_bring_its_namespace(name, where):
    assert main.parse_name(name, "ns") == where


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (75, "1m15s"), (374400, "4d8h"), (54000, "15h"), (1e7, "115d")],
)
def test_ages_are_printed_as_by_kubectl(seconds, text):
    assert printing.age(timedelta(seconds=seconds)) == text


def test_a_node_port_without_a_ready_node_is_reported_as_unreachable():
    with pytest.raises(HansaError, match="no node of the super cluster is Ready"):
        kubeconfig.node_address([])


def test_a_moved_kubeconfig_still_verifies_its_server():
    config = {
        "clusters": [{"name": "vc", "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority-data": "x"}}]
    }
    assert kubeconfig.with_server(config, "https://192.0.2.1:30000")["clusters"] == [
        {
            "name": "vc",
            "cluster": {
                "server": "https://192.0.2.1:30000",
                "certificate-authority-data": "x",
                "tls-server-name": "kubernetes",
            },
        }
    ]
    assert config["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"


def vc(phase="", *, generation=1, observed=0, **status):
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False", "message": "etcd is not ready"}
    conditions = [ready | ({"observedGeneration": observed} if observed else {})] if phase else []
    return api.virtual_cluster(
        Object.of(
            {
                "metadata": {"name": "one", "namespace": "ns", "generation": generation},
                "spec": {"clusterVersionName": "cv"},
                "status": {"phase": phase, "conditions": conditions, **status},
            }
        )
    )


def test_a_control_plane_is_waited_for_until_the_newest_spec_is_met():
    assert waiting.is_settled(vc("Running"))
    assert waiting.is_settled(vc("Running", generation=2, observed=2))
    assert not waiting.is_settled(vc("Running", generation=2, observed=1))
    assert not waiting.is_settled(vc("Updating"))
    assert not waiting.is_settled(vc())


def test_the_pending_reason_is_the_message_of_the_manager():
    assert waiting.pending_reason(vc("Pending")) == "etcd is not ready"
    assert waiting.pending_reason(vc()) == waiting.NOT_RECONCILED


def test_virtual_clusters_are_shown_as_a_table():
    now = vc().object.metadata.creation_timestamp
    lines = printing.table([vc("Running", clusterNamespace="ns-123456-one")], now).splitlines()
    assert lines[0].split() == ["NAMESPACE", "NAME", "PHASE", "CLUSTERVERSION", "ROOTNAMESPACE", "AGE"]
    assert lines[1].split() == ["ns", "one", "Running", "cv", "ns-123456-one", "-"]
