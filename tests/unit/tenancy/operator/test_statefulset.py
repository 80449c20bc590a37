"""The objects of a tenant's control plane: those of a ClusterVersion, with the values of the tenant."""

import ipaddress
from datetime import UTC, datetime

import pytest

import virtual_clusters
from hansa.kube.objects import Object
from hansa.tenancy import api
from hansa.tenancy.operator import cluster_versions, pki, statefulset, statefulset_objects
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium
from hansa.tenancy.operator.provisioning import DesiredControlPlane

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROOT = "ns-fd1b34-name"
SAMPLE = cluster_versions.samples()[0]


def desired(version=SAMPLE):
    vc = virtual_clusters.virtual_cluster("name", "ns").with_metadata(uid="d64ea0c0-91f8-46f5-8643-c0cab32ab0cd")
    services = ipaddress.ip_network("10.230.0.0/20")
    return DesiredControlPlane(api.virtual_cluster(vc), api.cluster_version(version), ROOT, services)


@pytest.fixture(scope="module")
def keys():
    identity = pki.Identity(ROOT, "name", "cluster.local", "https://10.0.0.1:6443", "https://10.0.0.1:6443")
    return pki.complete(identity, {}, NOW)


def of(name, keys, version=SAMPLE):
    [found] = [one for one in statefulset_objects.components(desired(version), keys) if one.name == name]
    return found


def container(component):
    return component.statefulset.spec["template"]["spec"]["containers"][0]


def test_components_start_in_the_order_in_which_they_need_each_other(keys):
    names = [one.name for one in statefulset_objects.components(desired(), keys)]
    assert names == ["etcd", "apiserver", "controller-manager"]


def test_a_version_without_a_controller_manager_has_two_components(keys):
    spec = {name: part for name, part in SAMPLE.spec.items() if name != "controllerManager"}
    made = statefulset_objects.components(desired(SAMPLE.with_fields(spec=spec)), keys)
    assert [one.name for one in made] == ["etcd", "apiserver"]


def test_everything_lies_in_the_root_namespace_and_leads_back_to_its_virtual_cluster(keys):
    for component in statefulset_objects.components(desired(), keys):
        for obj in (component.statefulset, component.service):
            assert obj.namespace == ROOT
            assert obj.labels["tenancy.x-k8s.io/cluster"] == ROOT
            assert obj.annotations["tenancy.x-k8s.io/vcname"] == "name"
            assert obj.annotations["tenancy.x-k8s.io/vcnamespace"] == "ns"
        template = component.statefulset.spec["template"]["metadata"]
        assert template["labels"] == {"component-name": component.name, "tenancy.x-k8s.io/cluster": ROOT}


def test_etcd_gets_its_members_as_initial_cluster(keys):
    spec = SAMPLE.spec
    spec["etcd"]["statefulset"]["spec"]["replicas"] = 3
    made = of("etcd", keys, SAMPLE.with_fields(spec=spec))
    peers = "etcd-0=https://etcd-0.etcd:2380,etcd-1=https://etcd-1.etcd:2380,etcd-2=https://etcd-2.etcd:2380"
    assert container(made)["args"][-1] == f"--initial-cluster={peers}"
    assert "etcd-2.etcd.ns-fd1b34-name" in statefulset_objects.etcd_names(desired(SAMPLE.with_fields(spec=spec)))


@pytest.mark.parametrize("name", ["apiserver", "controller-manager"])
def test_the_tenants_service_range_takes_the_place_of_the_samples(name, keys):
    ranges = [word for word in container(of(name, keys))["args"] if "service-cluster-ip-range" in word]
    assert ranges == ["--service-cluster-ip-range=10.230.0.0/20"]


def test_a_range_in_the_command_or_in_two_arguments_is_replaced_too(keys):
    version = virtual_clusters.cluster_version(
        "cv", apiserver=["--a", "--service-cluster-ip-range", "10.0.0.0/8", "--b"]
    )
    spec = version.spec
    first = spec["apiServer"]["statefulset"]["spec"]["template"]["spec"]["containers"][0]
    first["command"] += ["--service-cluster-ip-range=10.0.0.0/8"]
    made = container(of("apiserver", keys, version.with_fields(spec=spec)))
    assert made["command"] == ["kube-apiserver"]
    assert made["args"] == ["--a", "--b", "--service-cluster-ip-range=10.230.0.0/20"]


def test_pods_are_made_anew_when_their_keys_change_and_only_then(keys):
    before = {one.name: one.statefulset for one in statefulset_objects.components(desired(), keys)}
    again = {one.name: one.statefulset for one in statefulset_objects.components(desired(), keys)}
    assert {name: obj.to_json() for name, obj in before.items()} == {name: obj.to_json() for name, obj in again.items()}
    found = {secret.name: secret for secret in pki.secrets(keys, ROOT) if secret.name != pki.APISERVER}
    identity = pki.Identity(ROOT, "name", "cluster.local", "https://10.0.0.1:6443", "https://10.0.0.1:6443")
    renewed = pki.complete(identity, found, NOW)
    after = {one.name: one.statefulset for one in statefulset_objects.components(desired(), renewed)}
    assert [name for name in before if before[name].to_json() != after[name].to_json()] == ["apiserver"]


@pytest.mark.parametrize("medium", Medium)
def test_another_authority_of_etcd_restarts_it_and_its_client_unless_data_would_be_lost(keys, medium):
    """It is another one after its Secret was deleted, and both read it once."""

    def made(keys_of):
        components = statefulset_objects.components(desired(), keys_of, storage=EtcdStorage(medium))
        return {one.name: one.statefulset.to_json() for one in components}

    lost = (pki.ETCD_ROOT, pki.ETCD_SERVER, pki.ETCD_CLIENT)
    found = {secret.name: secret for secret in pki.secrets(keys, ROOT) if secret.name not in lost}
    identity = pki.Identity(ROOT, "name", "cluster.local", "https://10.0.0.1:6443", "https://10.0.0.1:6443")
    before, after = made(keys), made(pki.complete(identity, found, NOW))
    restarted = [name for name in before if before[name] != after[name]]
    assert restarted == (["etcd", "apiserver"] if medium is Medium.CLAIM else ["apiserver"])


def test_the_hashes_have_the_references_names(keys):
    assert sorted(statefulset_objects.hashes("apiserver", keys)) == [
        "tenancy.x-k8s.io/apiserver-ca-hash",
        "tenancy.x-k8s.io/etcd-root-ca-hash",
        "tenancy.x-k8s.io/front-proxy-ca-hash",
        "tenancy.x-k8s.io/root-ca-hash",
        "tenancy.x-k8s.io/serviceaccount-rsa-hash",
    ]
    assert sorted(statefulset_objects.hashes("controller-manager", keys)) == [
        "tenancy.x-k8s.io/controller-manager-kubeconfig-hash",
        "tenancy.x-k8s.io/root-ca-hash",
        "tenancy.x-k8s.io/serviceaccount-rsa-hash",
    ]
    assert sorted(statefulset_objects.hashes("etcd", keys)) == ["tenancy.x-k8s.io/etcd-root-ca-hash"]


def test_an_etcd_without_a_service_is_refused_with_a_sentence(keys):
    spec = SAMPLE.spec
    del spec["etcd"]["service"]
    with pytest.raises(api.BadVirtualCluster, match="spec.etcd.service.metadata.name of the ClusterVersion is empty"):
        statefulset_objects.components(desired(SAMPLE.with_fields(spec=spec)), keys)


def a_stateful_set(*, strategy="RollingUpdate", generation=2, **status):
    found = {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b", **status}
    spec = {"replicas": 2, "updateStrategy": {"type": strategy}}
    return Object.of(
        {"kind": "StatefulSet", "metadata": {"name": "s", "generation": generation}, "spec": spec, "status": found}
    )


@pytest.mark.parametrize(
    ("obj", "sentence"),
    [
        (a_stateful_set(generation=3), "its StatefulSet has not been observed by the StatefulSet controller"),
        (a_stateful_set(readyReplicas=2, updatedReplicas=1), "1 of 2 pods are updated"),
        (a_stateful_set(readyReplicas=1, updatedReplicas=2), "1 of 2 pods are ready"),
        (a_stateful_set(readyReplicas=2, updatedReplicas=2), ""),
        (a_stateful_set(readyReplicas=2, updateRevision="a"), ""),
        (a_stateful_set(readyReplicas=2, updatedReplicas=0, strategy="OnDelete"), ""),
        (a_stateful_set(), "0 of 2 pods are updated"),
    ],
)
def test_an_unready_stateful_set_has_a_reason(obj, sentence):
    assert statefulset.unready(obj) == sentence


def test_the_api_server_verifies_vn_agents_by_their_authority(keys):
    [_, made, controllers] = statefulset_objects.components(desired(), keys, vn_agent_ca=b"PEM")
    template = made.statefulset.spec["template"]
    assert "--kubelet-certificate-authority=/etc/kubernetes/pki/vn-agent/ca.crt" in container(made)["args"]
    [mount] = [one for one in container(made)["volumeMounts"] if one["name"] == "vn-agent-ca"]
    assert mount == {"name": "vn-agent-ca", "mountPath": "/etc/kubernetes/pki/vn-agent", "readOnly": True}
    assert {"name": "vn-agent-ca", "configMap": {"name": "vn-agent-ca"}} in template["spec"]["volumes"]
    assert "tenancy.x-k8s.io/vn-agent-ca-hash" in template["metadata"]["annotations"]
    assert controllers == of("controller-manager", keys)
    config = statefulset_objects.vn_agent_config(desired(), b"PEM")
    assert (config.namespace, config.name, config.get("data")) == (ROOT, "vn-agent-ca", {"ca.crt": "PEM"})


def test_only_the_api_server_and_its_own_members_reach_etcd_and_nobody_the_controllers():
    etcd, controllers = statefulset_objects.network_policies(desired())
    names = [one["from"][0]["podSelector"]["matchLabels"]["component-name"] for one in etcd.spec["ingress"]]
    assert (etcd.namespace, etcd.spec["podSelector"]["matchLabels"]) == (ROOT, {"component-name": "etcd"})
    assert names == ["etcd", "apiserver"]
    assert (controllers.name, controllers.spec["ingress"]) == ("controller-manager", [])
