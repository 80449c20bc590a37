"""Kubeconfigs of local clusters."""

import yaml

from hansa.kube.certificates import KeyPair
from hansa.local.control_plane import kubeconfig


def config(name):
    return kubeconfig.make(name, f"https://{name}", ca=b"ca", user=KeyPair(b"certificate", b"key"))


def test_a_merged_kubeconfig_has_a_context_for_each_cluster():
    merged = yaml.safe_load(kubeconfig.dump(kubeconfig.merge([config("a"), config("b")])))
    assert [c["name"] for c in merged["contexts"]] == ["a", "b"]
    assert [c["cluster"]["server"] for c in merged["clusters"]] == ["https://a", "https://b"]
    assert merged["current-context"] == "a"


def test_a_kubeconfig_of_no_cluster_is_still_one():
    assert kubeconfig.merge([]) == {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
