"""The DNS of a tenant of a pool: one in each super cluster where the tenant has a namespace, without a quota for it."""

import pytest

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from tenant_league import WITHIN

pytestmark = pytest.mark.timeout(600)  # the first one begins with three clusters, maybe on a busy machine
SLICE, SYSTEM = "scheduler.tenancy.x-k8s.io/slice", "kube-system"


async def ask(pool, value):
    """Set the annotation of the VirtualCluster."""
    [vc] = (await pool.meta.client.list(VIRTUAL_CLUSTERS)).items
    patch = {"metadata": {"annotations": {"tenancy.x-k8s.io/dns": value}}}
    await pool.meta.client.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace)


@pytest.fixture
async def dns(pool, tmp_path):
    """The pool with its scheduler, and a DNS for its tenant."""
    log = tmp_path / "vc-scheduler.log"
    async with programs.hansa("vc-scheduler", "--kubeconfig", str(pool.meta.cluster.kubeconfig), log=log):
        await ask(pool, "true")
        yield pool
        await ask(pool, None)
        made = ("deployment,service,configmap,serviceaccount", "-l", "hansa.dev/tenant-dns")
        await pool.meta.kubectl("-n", SYSTEM, "delete", *made)
        await pool.meta.kubectl("delete", "clusterrole,clusterrolebinding", "-l", "hansa.dev/tenant-dns")


async def servers(pool):
    """The super clusters with a DNS of the tenant that runs, as the tenant sees it and as it is."""
    page = await pool.meta.client.list(resources.PODS, namespace=SYSTEM, labels="k8s-app=kube-dns")
    above = {
        one.annotations.get("scheduler.tenancy.x-k8s.io/superCluster")
        for one in page.items
        if one.status.get("phase") == "Running"
    }
    below = set()
    for name, side in pool.supers.items():
        found = await side.client.list(resources.PODS, namespace=pool.tenant.below(SYSTEM), labels="k8s-app=kube-dns")
        below |= {name} if any(one.status.get("phase") == "Running" for one in found.items) else set()
    assert above == below, (above, below)
    return below


async def addresses(side, namespace):
    """The addresses of the DNS pods of one super cluster."""
    pods = (await side.client.list(resources.PODS, namespace=namespace, labels="k8s-app=kube-dns")).items
    return {one.status["podIP"] for one in pods}


async def test_each_super_cluster_with_a_namespace_of_the_tenant_has_a_dns(dns, namespace):
    await dns.meta.make(resources.NAMESPACES, namespace, metadata={"annotations": {SLICE: '{"cpu":"100m"}'}})
    await dns.meta.kubectl("create", "quota", "all", "-n", namespace, "--hard=cpu=200m")

    async def are_in(*wanted):
        assert await servers(dns) == set(wanted)
        return True

    await eventually(lambda: are_in("r1", "r2"), within=WITHIN)
    for side in dns.supers.values():
        await dns.reached(side, SYSTEM, "kube-dns", await addresses(side, dns.tenant.below(SYSTEM)))
    await dns.meta.kubectl("delete", "quota", "all", "-n", namespace)
    await eventually(are_in, within=WITHIN)
    deployments = await dns.meta.client.list(resources.DEPLOYMENTS, namespace=SYSTEM, labels="hansa.dev/tenant-dns")
    assert not deployments.items
