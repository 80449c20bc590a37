"""VirtualCluster's two tables: which kinds are synced, under which name, and the effect of its settings."""

import pytest

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.pair import Key, Link
from hansa.model.references import Missing
from hansa.model.translation.tenant.tenant_settings import Allowance
from hansa.modes import virtualcluster, virtualcluster_settings
from hansa.modes.virtualcluster_settings import InvalidSettings, TenantSettings, VirtualClusterSettings

DOWN = {
    resources.NAMESPACES,
    resources.PODS,
    resources.SERVICES,
    resources.ENDPOINTS,
    resources.ENDPOINT_SLICES,
    resources.CONFIG_MAPS,
    resources.SECRETS,
    resources.SERVICE_ACCOUNTS,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.INGRESSES,
    resources.NETWORK_POLICIES,
    resources.POD_DISRUPTION_BUDGETS,
}
CLASSES = {
    resources.STORAGE_CLASSES,
    resources.PRIORITY_CLASSES,
    resources.RUNTIME_CLASSES,
    resources.INGRESS_CLASSES,
}
LOOKED_UP = {resources.NODES, resources.PERSISTENT_VOLUMES, *CLASSES}
UP = {
    resources.PERSISTENT_VOLUMES,
    resources.NODES,
    resources.LEASES,
    resources.CUSTOM_RESOURCE_DEFINITIONS,
    *CLASSES,
}
KEY = "default-fd1b34-vc-sample-1"
LINK = Link(KEY, "id-of-tenant", "super", TenantSettings(KEY))


def test_kinds_that_are_synced_down() -> None:
    assert virtualcluster.mode(VirtualClusterSettings()).rules.keys() == DOWN | LOOKED_UP


def test_kinds_that_are_synced_up() -> None:
    mode = virtualcluster.shared(VirtualClusterSettings())
    assert {rule.resource for rule in mode.rules.values() if rule.is_synced} == UP
    assert mode.rules.keys() - UP == {resources.PODS, resources.PERSISTENT_VOLUME_CLAIMS}


def test_the_super_cluster_is_watched_once_for_all_tenants() -> None:
    assert virtualcluster.mode(VirtualClusterSettings()).shares_lowers
    assert not virtualcluster.shared(VirtualClusterSettings()).shares_lowers


def test_kinds_whose_status_is_synced_up() -> None:
    mode = virtualcluster.mode(VirtualClusterSettings())
    assert {rule.resource for rule in mode.rules.values() if rule.up_patches} == {
        resources.PODS,
        resources.SERVICES,
        resources.PERSISTENT_VOLUME_CLAIMS,
        resources.INGRESSES,
    }


def test_names_are_the_tenants_with_its_key_before_the_namespace() -> None:
    mode = virtualcluster.mode(VirtualClusterSettings())

    def below(resource: Resource, namespace: str, name: str) -> NamespacedName:
        return mode.lower_name(Key(KEY, resource, namespace, name), "", LINK)

    assert below(resources.PODS, "shop", "web") == NamespacedName(f"{KEY}-shop", "web")
    assert below(resources.NAMESPACES, "", "kube-system") == NamespacedName("", f"{KEY}-kube-system")
    assert below(resources.NODES, "", "n1") == NamespacedName("", "n1")
    ours = below(resources.CONFIG_MAPS, "shop", "kube-root-ca.crt")
    assert (ours.namespace, ours.name != "kube-root-ca.crt") == (f"{KEY}-shop", True)


def test_two_tenants_with_the_same_names_never_meet() -> None:
    mode = virtualcluster.mode(VirtualClusterSettings())
    links = [
        Link(key, f"id-of-{key}", "super", TenantSettings(key)) for key in ("default-aaaaaa-vc", "default-bbbbbb-vc")
    ]
    for resource in DOWN:
        namespace = "" if resource == resources.NAMESPACES else "shop"
        one, other = (mode.lower_name(Key(link.upper, resource, namespace, "web"), "", link) for link in links)
        assert one != other


def test_a_namespace_leaves_last_and_a_default_account_that_is_there_serves() -> None:
    rules = virtualcluster.mode(VirtualClusterSettings()).rules
    assert rules[resources.NAMESPACES].lifecycle.deleted_last
    shares_name = rules[resources.SERVICE_ACCOUNTS].lifecycle.shares_name
    assert (shares_name("default"), shares_name("robot")) == (True, False)
    assert rules[resources.PRIORITY_CLASSES].lifecycle.may_share, "what the super cluster has is watched"


def test_references_of_a_pod_are_required_or_placeholders_except_pull_secrets() -> None:
    volumes = [
        {"name": "a", "secret": {"secretName": "must"}},
        {"name": "b", "configMap": {"name": "may", "optional": True}},
    ]
    spec = {"containers": [], "volumes": volumes, "imagePullSecrets": [{"name": "pull"}, {"name": "must"}]}
    pod = Object.of({"kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": spec})
    found = {
        one.name: one.missing
        for one in virtualcluster.mode(VirtualClusterSettings()).rules[resources.PODS].references(pod)
    }
    assert {name: found[name] for name in ("must", "may", "pull", "default", "kubernetes")} == {
        "must": Missing.REQUIRED,
        "may": Missing.PLACEHOLDER,
        "pull": Missing.IGNORED,
        "default": Missing.REQUIRED,
        "kubernetes": Missing.IGNORED,
    }


def test_names_of_modes_are_labels_of_metrics() -> None:
    settings = VirtualClusterSettings()
    names = [virtualcluster.mode(settings).name, virtualcluster.shared(settings).name]
    assert names == ["virtualcluster", "virtualcluster-shared"]


def test_settings_are_parsed_by_name_and_an_unknown_one_is_reported() -> None:
    virtualcluster_settings.check_extra(["ingress", " networkpolicy", ""])
    assert virtualcluster_settings.allowances(["hostPath"]) == {Allowance.HOST_PATH}
    assert virtualcluster_settings.dns_options("ndots=5, edns0") == (("ndots", "5"), ("edns0", ""))
    with pytest.raises(
        InvalidSettings, match='^--extra-syncing-resources: .* "pods"; supported: ingress, networkpolicy, '
    ):
        virtualcluster_settings.check_extra(["pods"])
    with pytest.raises(InvalidSettings, match='^--allow: unknown allowance "root"; supported: hostPath, '):
        virtualcluster_settings.allowances(["root"])
