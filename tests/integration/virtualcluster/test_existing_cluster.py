"""A tenant with an existing cluster: after its deletion the cluster has its own objects and no synced ones."""

import base64
import contextlib

import pytest

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from league import container, fresh_name
from tenant_league import Tenant

PUBLIC = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}
MAKER = {"provisioner": "example.com/none"}


@pytest.fixture
async def brought(tenants, clusters, tmp_path):
    """`vc-manager` and `vc-syncer` over a super cluster of their own, and a tenant with its own; others rest."""
    await tenants.kill()
    base, member, name = clusters["spare"], clusters["green"], fresh_name("vc")
    kubeconfig = str(base.cluster.kubeconfig)
    manager = (
        "vc-manager",
        "--kubeconfig",
        kubeconfig,
        "--provisioner",
        "existing",
        "--state",
        str(tmp_path / "state"),
    )
    async with contextlib.AsyncExitStack() as stack:
        for command in (manager, ("vc-syncer", "--super-master-kubeconfig", kubeconfig)):
            await stack.enter_async_context(programs.hansa(*command, log=tmp_path / f"{command[0]}.log"))
        await eventually(lambda: base.find("clusterversion", "cv-sample-np"), within=60)
        encoded = base64.b64encode(member.cluster.kubeconfig.read_bytes()).decode()
        words = {"annotations": {"tenancy.x-k8s.io/admin-kubeconfig": encoded}}
        made = await base.make(
            VIRTUAL_CLUSTERS, name, "default", metadata=words, spec={"clusterVersionName": "cv-sample-np"}
        )
        key = api.root_namespace(NamespacedName("default", name), made["metadata"]["uid"])
        yield base, Tenant(member.cluster, member.kubectl, member.client, key), name


@pytest.mark.timeout(400)
async def test_an_existing_cluster_keeps_no_objects_of_super_clusters(brought):
    base, tenant, name = brought
    given, own, node, pod = fresh_name("given"), fresh_name("own"), fresh_name("node"), fresh_name("pod")
    await tenant.make(resources.STORAGE_CLASSES, own, **MAKER)
    await base.make(resources.STORAGE_CLASSES, given, metadata=PUBLIC, **MAKER)
    await base.make(resources.PRIORITY_CLASSES, given, metadata=PUBLIC, value=1)
    await base.make(resources.NODES, node)
    await base.make(
        resources.LEASES, node, "kube-node-lease", spec={"holderIdentity": node, "leaseDurationSeconds": 40}
    )
    await tenant.make(resources.PODS, pod, "default", spec={"containers": [container()]})
    await base.there(resources.PODS, pod, tenant.below())
    binding = {"metadata": {"name": pod}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
    bound = Object.of({"apiVersion": "v1", "kind": "Binding", **binding})
    await base.client.call(resources.PODS, pod, "binding", body=bound, namespace=tenant.below())
    things = [
        (resources.STORAGE_CLASSES, given, ""),
        (resources.PRIORITY_CLASSES, given, ""),
        (resources.NODES, node, ""),
        (resources.LEASES, node, "kube-node-lease"),
    ]
    for thing in things:
        await tenant.there(*thing)

    await base.kubectl("delete", "vc", name, "--timeout=120s")
    for thing in things:
        assert await tenant.look(*thing) is None
    assert await tenant.look(resources.STORAGE_CLASSES, own)
    assert await tenant.look(resources.PODS, pod, "default")
    await tenant.client.delete(resources.PODS, pod, namespace="default")
    await tenant.client.delete(resources.STORAGE_CLASSES, own)
    for resource, thing, namespace in things:
        await base.client.delete(resource, thing, namespace=namespace)
