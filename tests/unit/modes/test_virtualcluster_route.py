"""A tenant's route, from its VirtualCluster."""

import ipaddress

from hansa.kube.objects import Object
from hansa.model.translation.tenant.tenant_lists import TenantLists
from hansa.model.translation.tenant.tenant_settings import Allowance, ApiEndpoint, PodSecurity, TenantSettings
from hansa.modes import virtualcluster_route
from hansa.tenancy.syncing.api_addresses import ApiServer
from hansa.tenancy.syncing.members import Tenancy
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.super_clusters import Served

OWNER = Owner("default-489f96-one", "default", "one", "u-1", "m-1")
RANGES = (ipaddress.ip_network("10.32.0.0/20"),)
ADDRESSES = frozenset({"192.0.2.1", "10.0.0.7"})
ENDPOINTS = (ApiEndpoint("10.0.0.7", 6443),)
EVERYBODY = TenantSettings("")


def route(*, common=EVERYBODY, ranges=RANGES, spec=None, is_pooled=False, **annotations):
    words = {f"tenancy.x-k8s.io/{word}": value for word, value in annotations.items()}
    metadata = {"name": "one", "namespace": "default", "uid": "u-1", "annotations": words}
    kind = {"apiVersion": "tenancy.x-k8s.io/v1alpha1", "kind": "VirtualCluster"}
    vc = Object.of(kind | {"metadata": metadata, "spec": {"clusterVersionName": "cv"} | (spec or {})})
    tenancy = Tenancy(vc, OWNER, "https://192.0.2.1:6443")
    served = Served(ranges, ApiServer(ADDRESSES, ENDPOINTS, is_relayed=True))
    return virtualcluster_route.route(tenancy, "super", served, common=common, is_pooled=is_pooled)


def test_a_route_knows_the_virtual_cluster_and_where_its_api_server_is():
    tenant = route(
        spec={"clusterDomain": "blue.local", "opaqueMetaPrefixes": ["a/"], "transparentMetaPrefixes": ["b/"]}
    )
    assert (tenant.upper, tenant.lower) == ("default-489f96-one", "super")
    settings = tenant.settings
    assert (settings.key, settings.namespace, settings.name, settings.uid, settings.meta) == (
        *("default-489f96-one", "default", "one", "u-1", "m-1"),
    )
    assert (settings.cluster_domain, settings.opaque_prefixes, settings.transparent_prefixes) == (
        "blue.local",
        ("a/",),
        ("b/",),
    )
    assert (settings.api_host, settings.api_port, settings.api_addresses) == ("192.0.2.1", "6443", ADDRESSES)
    assert (settings.api_endpoints, settings.is_api_relayed) == (ENDPOINTS, True)


def test_a_virtual_cluster_allows_more_than_all_may():
    common = TenantSettings("", allowed=frozenset({Allowance.HOST_PORTS}))
    assert route(common=common, allow="hostPath").settings.allowed == {
        Allowance.HOST_PORTS,
        Allowance.HOST_PATH,
    }


def test_a_virtual_cluster_adds_to_the_lists_of_all():
    common = TenantSettings("", lists=TenantLists(synced_annotations=frozenset({"a"})))
    found = route(common=common, **{"synced-annotations": "b"}).settings.lists
    assert found.synced_annotations == {"a", "b"}


def test_a_virtual_cluster_has_a_level_of_pod_security_of_its_own():
    common = TenantSettings("", pod_security=PodSecurity.RESTRICTED)
    assert route(common=common).settings.pod_security is PodSecurity.RESTRICTED
    assert route(common=common, **{"pod-security": "baseline"}).settings.pod_security is PodSecurity.BASELINE


def test_services_keep_their_addresses_only_where_the_super_cluster_has_the_range():
    assert route().settings.service_ranges == RANGES
    assert route(ranges=()).settings.service_ranges == ()


def test_the_weight_of_a_virtual_cluster_is_that_of_its_route():
    made = route(weight="4")
    assert made.weight == made.settings.weight == 4


def test_in_a_pool_a_route_knows_the_id_of_its_super_cluster():
    assert route().settings.super_cluster == ""
    assert route(is_pooled=True).settings.super_cluster == "super"
