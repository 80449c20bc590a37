"""The flags of `hansa vn-agent`."""

import argparse
from pathlib import Path

import pytest

from hansa.cli import unused_flags, vn_agent
from hansa.kube.credentials.source import CredentialSource
from hansa.kubelet.certificates import CertificateFiles
from hansa.runtime.errors import HansaError

KUBELET = ("--kubelet-client-certificate", "--kubelet-client-key", "--kubelet-certificate-authority")


def parse(*words):
    parser = argparse.ArgumentParser()
    vn_agent.add_to(parser.add_subparsers())
    return parser.parse_args(["vn-agent", *words])


def read(*words):
    return vn_agent.read(parse(*words))


def test_without_flags_one_vn_agent_serves_all_nodes_through_the_api_server_of_the_pods_cluster():
    found = read()
    assert (found.super_cluster, found.meta, found.kubelet, found.serving) == (CredentialSource(), None, None, None)
    assert (found.node, found.address, found.port) == ("", "", 10550)
    assert (found.connections, found.bandwidth) == (100, 100 * 2**20)


def test_one_kubeconfig_is_that_of_both_clusters():
    assert (read("--super-master-kubeconfig", "s").meta, read("--meta-cluster-kubeconfig", "m").meta) == (None, None)
    both = read("--super-master-kubeconfig", "s", "--meta-cluster-kubeconfig", "m")
    assert (both.super_cluster, both.meta) == (CredentialSource(Path("s")), CredentialSource(Path("m")))


def test_the_kubelet_is_called_with_a_certificate_and_its_own_one_is_verified(tmp_path):
    files = {flag: tmp_path / flag for flag in KUBELET}
    words = [word for flag, path in files.items() for word in (flag, str(path))]
    for path in files.values():
        with pytest.raises(HansaError, match="is not a file"):
            read(*words)
        path.write_text("PEM")
    found = read(*words, "--kubelet-host", "10.0.0.11").kubelet
    assert (found.host, found.port, found.certificate, found.key, found.ca) == ("10.0.0.11", 10250, *files.values())
    with pytest.raises(HansaError, match="--kubelet-certificate-authority is missing"):
        read(*words[:4])
    serving = read("--tls-cert-file", words[1], "--tls-private-key-file", words[3]).serving
    assert serving == CertificateFiles(files[KUBELET[0]], files[KUBELET[1]])


def test_flags_of_upstreams_vn_agent_are_accepted():
    arguments = parse("--client-ca-file=/ca.crt", "--cert-dir=/certs", "--enable-metrics", "--feature-gates=")
    assert set(unused_flags.given(arguments)) == {"--client-ca-file", "--cert-dir", "--enable-metrics"}


@pytest.mark.parametrize(
    "words",
    [
        ("--address", "localhost"),
        ("--port", "0"),
        ("--tenant-connections", "0"),
        ("--tenant-bandwidth", "-1"),
        ("--tenant-bandwidth", "nan"),
    ],
)
def test_nonsense_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        read(*words)
    assert words[0] in capsys.readouterr().err


def test_the_certificate_has_the_names_of_a_service_as_well():
    assert read("--certificate-names", "10.0.0.9, agent.example.com,").names == ("10.0.0.9", "agent.example.com")
