"""The DNS that tenants get, in a real control plane: what is created, and what is left to the tenant."""

import pytest

from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.tenancy.syncing import dns_objects
from hansa.tenancy.syncing.dns_objects import DnsSettings
from hansa.tenancy.syncing.members import Tenancy
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.tenant_dns import TenantDns

SYSTEM, LABEL = "kube-system", "hansa.dev/tenant-dns"
DNS = TenantDns(DnsSettings(image="example.com/coredns:1"), lambda: ())
FULL = "10.255.255.0/24"  # no range of the cluster: its API server refuses addresses of it


def tenancy(*, service_cidr=FULL, **annotations):
    words = {f"tenancy.x-k8s.io/{word}": value for word, value in annotations.items()}
    metadata = {"name": "one", "namespace": "default", "annotations": words}
    vc = Object.of({"kind": "VirtualCluster", "metadata": metadata, "spec": {"serviceCidr": service_cidr}})
    return Tenancy(vc, Owner("default-1-one", "default", "one", "u", "m"), "https://192.0.2.1:6443")


async def found(client):
    """The names of the objects by kind, and the Service."""
    kinds = (resources.DEPLOYMENTS, resources.CONFIG_MAPS, resources.SERVICE_ACCOUNTS, resources.SERVICES)
    return {
        one.kind: sorted(obj.name for obj in (await client.list(one, namespace=SYSTEM, labels=LABEL)).items)
        for one in kinds
    }


ALL = {"Deployment": ["coredns"], "ConfigMap": ["coredns"], "ServiceAccount": ["coredns"], "Service": ["kube-dns"]}


@pytest.fixture
async def tenant(client):
    """The shared cluster as the control plane of a tenant; at the end it has no DNS."""
    yield client
    for kind in (resources.DEPLOYMENTS, resources.CONFIG_MAPS, resources.SERVICE_ACCOUNTS, resources.SERVICES):
        names = {one.name for one in (await client.list(kind, namespace=SYSTEM)).items}
        for name in names & {dns_objects.DEPLOYMENT, dns_objects.SERVICE}:
            await client.delete(kind, name, namespace=SYSTEM)


async def service(client):
    return await client.get(resources.SERVICES, "kube-dns", namespace=SYSTEM)


async def test_missing_objects_are_created_and_others_are_not_changed(tenant):
    await DNS.ensure(tenancy(), tenant)
    assert await found(tenant) == ALL
    assert (await service(tenant)).spec["clusterIP"] != "10.255.255.10"  # it has a free address instead
    scaled = {"spec": {"replicas": 3}}
    await tenant.patch(resources.DEPLOYMENTS, "coredns", scaled, namespace=SYSTEM)
    await DNS.ensure(tenancy(), tenant)
    deployment = await tenant.get(resources.DEPLOYMENTS, "coredns", namespace=SYSTEM)
    assert deployment.spec["replicas"] == 3
    assert deployment.spec["template"]["spec"]["containers"][0]["image"] == "example.com/coredns:1"
    for kind in (resources.DEPLOYMENTS, resources.CONFIG_MAPS):
        await tenant.delete(kind, "coredns", namespace=SYSTEM)
    await DNS.ensure(tenancy(), tenant)
    assert await found(tenant) == ALL


async def test_a_tenant_takes_its_dns_over_by_removing_the_label(tenant):
    await DNS.ensure(tenancy(), tenant)
    await tenant.patch(resources.SERVICES, "kube-dns", {"metadata": {"labels": {LABEL: None}}}, namespace=SYSTEM)
    await tenant.delete(resources.DEPLOYMENTS, "coredns", namespace=SYSTEM)
    await DNS.ensure(tenancy(), tenant)
    with pytest.raises(errors.NotFound):
        await tenant.get(resources.DEPLOYMENTS, "coredns", namespace=SYSTEM)


@pytest.mark.parametrize(
    ("annotations", "is_enabled", "has_one"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"dns": "true"}, False, True),
        ({"dns": "false"}, True, False),
        ({"admin-kubeconfig": "eA=="}, True, False),
        ({"admin-kubeconfig": "eA==", "dns": "true"}, True, True),
    ],
)
async def test_who_gets_one(tenant, annotations, is_enabled, has_one):
    await TenantDns(DnsSettings(is_enabled), lambda: ()).ensure(tenancy(**annotations), tenant)
    assert bool((await found(tenant))["Service"]) is has_one
