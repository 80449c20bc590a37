"""The flags of the syncer, upstream's own among them."""

import argparse
from pathlib import Path

import pytest

from hansa.cli import vc_syncer
from hansa.kube.credentials.source import CredentialSource
from hansa.model.translation.tenant.nodes import AgentAddress
from hansa.model.translation.tenant.tenant_settings import Allowance, Isolation
from hansa.modes.virtualcluster_settings import InvalidSettings, PoolSettings


def read(*words):
    parser = argparse.ArgumentParser()
    vc_syncer.add_to(parser.add_subparsers())
    return vc_syncer.read(parser.parse_args(["vc-syncer", *words]))


def test_one_kubeconfig_is_that_of_both_clusters_and_none_is_kubectls_or_a_pods():
    assert (read().super_cluster, read().meta) == (CredentialSource(), None)
    for flag in ("--super-master-kubeconfig", "--meta-cluster-kubeconfig"):
        settings = read(flag, "one")
        assert (settings.super_cluster, settings.meta) == (CredentialSource(Path("one")), None)
    both = read("--super-master-kubeconfig", "s", "--meta-cluster-kubeconfig", "m")
    assert (both.super_cluster, both.meta) == (CredentialSource(Path("s")), CredentialSource(Path("m")))


def test_allowances_and_extra_resources_are_checked_by_name():
    settings = read("--allow", "hostPath, privileged", "--extra-syncing-resources", "ingress,crd")
    assert settings.tenants.allowed == {Allowance.HOST_PATH, Allowance.PRIVILEGED}
    with pytest.raises(InvalidSettings, match='unknown extra resource "pods"; supported: ingress'):
        read("--extra-syncing-resources", "pods")
    with pytest.raises(InvalidSettings, match='--allow: unknown allowance "root"; supported: hostPath'):
        read("--allow", "root")


def test_lists_of_all_tenants_are_flags_whose_invalid_entries_are_errors():
    assert "Pod:kubectl.kubernetes.io/default-container" in read().tenants.lists.synced_annotations
    assert "istio.io/*" in read().tenants.opaque_labels
    settings = read("--synced-annotations=example.com/*,Service:a/b", "--opaque-labels=mine").tenants
    assert (settings.lists.synced_annotations, settings.opaque_labels) == ({"example.com/*", "Service:a/b"}, {"mine"})
    with pytest.raises(InvalidSettings, match='--synced-annotations: "a b" is not KEY'):
        read("--synced-annotations", "a b")
    with pytest.raises(InvalidSettings, match='--opaque-labels: "Pod:a" is not KEY'):
        read("--opaque-labels", "Pod:a")


def test_tenants_are_isolated_unless_that_is_turned_off():
    settings = read("--inside-ranges=10.0.0.0/16", "--name-servers=10.0.0.2", "--ingress-peers=10.1.0.0/16,team=edge")
    assert settings.mode.isolates
    assert settings.tenants.isolation == Isolation(frozenset({"10.0.0.0/16"}), frozenset({"10.0.0.2"}))
    assert settings.tenants.lists.ingress_peers == {"10.1.0.0/16", "team=edge"}
    off = read("--no-isolate-tenants")
    assert (off.mode.isolates, off.tenants.isolation) == (False, None)
    for flag, text in (("--inside-ranges", "private"), ("--name-servers", "10.0.0.1/8"), ("--egress-peers", "edge")):
        with pytest.raises(InvalidSettings, match=f'{flag}: "{text}" is not CIDR'):
            read(flag, text)


def test_the_retention_of_virtual_nodes_has_an_alias():
    assert read().mode.node_retention == 120
    assert read("--node-retention", "5").mode.node_retention == 5
    assert read("--nodes-linger", "5").mode.node_retention == 5


def test_the_election_is_off_unless_asked_for_and_named_by_the_syncer():
    assert read().election_namespace == ""
    assert read("--leader-elect=false").election_namespace == ""
    settings = read("--leader-elect", "--leader-elect-resource-namespace", "vc-manager", "--syncer-name", "r1")
    assert (settings.election_namespace, settings.name) == ("vc-manager", "r1")


def test_the_command_line_of_upstreams_manifests_is_accepted():
    settings = read(
        "--deployment-on-meta=true",
        "--super-master-kubeconfig=/etc/supercluster/config",
        "--syncer-name=vc-syncer-r1",
        "--feature-gates=SuperClusterPooling=true",
        "--disable-service-account-token=true",
        "--dns-options=ndots=2,edns0",
        "--extra-node-labels=zone,rack",
        "--opaque-taint-keys=dedicated",
        "--default-opaque-meta-domains=example.com",
    )
    assert (settings.super_cluster, settings.meta) == (
        CredentialSource(Path("/etc/supercluster/config")),
        CredentialSource(None),
    )
    assert settings.mode.pool == PoolSettings()
    assert settings.tenants.dns_options == (("ndots", "2"), ("edns0", ""))
    assert settings.tenants.opaque_domains == ("example.com",)
    assert (settings.mode.nodes.labels, settings.mode.nodes.taints) == ({"zone", "rack"}, {"dedicated"})


GRACE = ("--fence-grace", "7")


def test_one_process_serves_a_whole_pool_or_one_of_its_super_clusters():
    assert read().mode.pool is None
    assert read("--feature-gates=SuperClusterPooling=false").mode.pool is None
    settings = read("--pool", "--meta-cluster-kubeconfig", "m", "--networks-joined", "--lost-after", "9", *GRACE)
    assert (settings.super_cluster, settings.meta) == (None, CredentialSource(Path("m")))
    assert settings.mode.pool == PoolSettings(are_networks_joined=True)
    assert (settings.lost_after, settings.fence_grace) == (9, 7)
    with pytest.raises(InvalidSettings, match="but not both"):
        read("--pool", "--super-master-kubeconfig", "s")


def test_one_vn_agent_may_serve_all_nodes_of_a_super_cluster():
    assert read().mode.nodes.agents == {}
    assert read("--vn-agent-address", "10.0.0.5").mode.nodes.agents == {"": AgentAddress("10.0.0.5", 10550)}
    found = read("--vn-agent-address", "r1=10.0.0.5:1, r2=[fd00::5]:2").mode.nodes.agents
    assert found == {"r1": AgentAddress("10.0.0.5", 1), "r2": AgentAddress("fd00::5", 2)}


@pytest.mark.parametrize("text", ["vn-agent", "10.0.0.5:port", "10.0.0.5:99999", "=10.0.0.5", "r1=", ":10550"])
def test_an_address_of_a_vn_agent_that_api_servers_cannot_use_is_refused(text):
    with pytest.raises(InvalidSettings, match="--vn-agent-address"):
        read("--vn-agent-address", text)
