"""The manifests that `hansa join` writes."""

import base64

import pytest
import yaml

from hansa.kube.credentials import kubeconfig
from hansa.kube.credentials.login import Login, Text
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.tenancy.pool import cluster_id, join_manifests, joining
from hansa.tenancy.pool.join_manifests import Joined

CLUSTERS = Resource("cluster.x-k8s.io", "v1alpha4", "clusters", kind="Cluster")
LOGIN = Login(server="https://192.0.2.1:6443", origin="a file", ca=Text(b"CA", "a file"), server_name="api")
JOINED = Joined("r1", "default", "u-1", join_manifests.kubeconfig("r1", LOGIN, "secret"), "hansa:1", CLUSTERS)


def test_the_kubeconfig_leads_to_the_same_server_with_our_token_and_nothing_of_the_administrators():
    found = kubeconfig.parse(JOINED.kubeconfig, origin="kubeconfig")
    assert (found.server, found.server_name, found.ca.read()) == (LOGIN.server, "api", b"CA")
    assert found.token.read() == b"secret"
    assert found.certificate is None
    assert "secret" not in repr(JOINED)


def test_the_files_are_the_seeds_and_the_kubeconfig_is_in_both_secrets():
    files = JOINED.files()
    assert sorted(files) == [
        *("cluster-cr.yaml", "cluster-id.yaml", "secret-for-scheduler.yaml", "secret-for-vc-syncer.yaml"),
        "vc-syncer.yaml",
    ]
    [scheduler], [syncer] = files["secret-for-scheduler.yaml"], files["secret-for-vc-syncer.yaml"]
    assert (str(scheduler.key), str(syncer.key)) == ("default/r1", "vc-manager/cluster-r1-config")
    for secret, key in ((scheduler, "admin-kubeconfig"), (syncer, "config")):
        assert base64.b64decode(secret.get("data")[key]).decode() == JOINED.kubeconfig
    [cluster] = files["cluster-cr.yaml"]
    assert (str(cluster.key), cluster.status) == ("default/r1", {"phase": "Provisioned"})
    assert cluster.annotations == {keys.SUPER_UID: "u-1"}
    assert "super-agent.yaml" in JOINED.files(has_agent=True)
    assert sorted(JOINED.files(has_syncer=False)) == ["cluster-cr.yaml", "cluster-id.yaml", "secret-for-scheduler.yaml"]


def test_every_object_has_a_resource_and_survives_yaml():
    for objects in (*JOINED.files(has_agent=True).values(), join_manifests.account()):
        assert [one["kind"] for one in yaml.safe_load_all(join_manifests.dumped(objects))] == [o.kind for o in objects]
        for one in objects:
            assert joining.kind_of(one).kind == one.kind
            assert joining.kind_of(one).namespaced == bool(one.namespace)
    for name in ("vc-syncer.yaml", "super-agent.yaml"):
        assert "$" not in join_manifests.dumped(JOINED.files(has_agent=True)[name])


@pytest.mark.parametrize("text", ["", "R1", "a.b", "-a", "a-", "a" * 51, "a_b"])
def test_an_id_must_be_fit_for_names(text):
    assert cluster_id.checked("r1") == "r1"
    with pytest.raises(cluster_id.BadId, match="cannot be the id"):
        cluster_id.checked(text)
