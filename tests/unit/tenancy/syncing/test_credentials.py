"""Credentials of tenants: where they are stored, which fields are used, and that newer ones replace them."""

import base64

import pytest
import yaml

from hansa.kube.errors import BadCredentials
from hansa.kube.objects import Object
from hansa.tenancy.syncing import credentials
from hansa.tenancy.syncing.credentials import EncodedKubeconfig, TenantCredentials


def kubeconfig(server="https://10.0.0.1:6443", **user):
    return base64.b64encode(
        yaml.safe_dump(
            {
                "current-context": "default",
                "contexts": [{"name": "default", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": user or {"token": "t"}}],
            }
        ).encode()
    ).decode()


def vc(**annotations):
    words = {f"tenancy.x-k8s.io/{word.replace('__', '.').replace('_', '-')}": v for word, v in annotations.items()}
    metadata = {"name": "one", "namespace": "default", "uid": "u-1", "annotations": words}
    return Object.of({"apiVersion": "tenancy.x-k8s.io/v1alpha1", "kind": "VirtualCluster", "metadata": metadata})


def secret(**data):
    return Object.of(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "root"}, "data": data}
    )


def test_the_secret_of_the_root_namespace_is_asked_for_unless_the_annotations_say_otherwise():
    assert credentials.secret_of(vc()) == "admin-kubeconfig"
    assert credentials.secret_of(vc(secret__admin_kubeconfig="mine")) == "mine"
    assert credentials.secret_of(vc(admin_kubeconfig="eA==")) == ""


def test_a_kubeconfig_is_found_in_the_annotation_or_under_either_key_of_the_secret():
    assert credentials.find(vc(admin_kubeconfig="eA=="), None).encoded == "eA=="
    assert credentials.find(vc(), secret(**{"admin-kubeconfig": "eA=="})).encoded == "eA=="
    assert credentials.find(vc(), secret(value="eA==")).encoded == "eA=="
    assert credentials.find(vc(), secret(other="eA==")) is None
    assert credentials.find(vc(), None) is None


def test_brackets_round_a_name_are_taken_away_and_those_round_an_address_of_ipv6_stay():
    assert (
        EncodedKubeconfig(kubeconfig("https://[apiserver-svc.root]:6443"), "o").login().server
        == "https://apiserver-svc.root:6443"
    )
    assert EncodedKubeconfig(kubeconfig("https://[fd00::1]:6443"), "o").login().server == "https://[fd00::1]:6443"


@pytest.mark.parametrize(
    "user",
    [
        {"tokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token"},
        {"client-certificate": "/etc/a.crt", "client-key": "/etc/a.key"},
        {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "interactiveMode": "Never"}},
    ],
)
def test_who_writes_a_virtual_cluster_cannot_have_files_read_or_programs_run(user):
    with pytest.raises(BadCredentials, match="annotation x refers to files or an exec plugin"):
        EncodedKubeconfig(kubeconfig(**user), "annotation x").login()


async def test_newer_credentials_are_used_from_then_on():
    kept = TenantCredentials(EncodedKubeconfig(kubeconfig(token="old"), "o"))
    assert ("Authorization", "Bearer old") in (await kept.access()).headers
    kept.observe(EncodedKubeconfig(kubeconfig(token="new"), "o"))
    assert ("Authorization", "Bearer new") in (await kept.access()).headers
