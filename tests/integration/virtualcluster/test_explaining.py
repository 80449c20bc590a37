"""`hansa explain` says why a tenant's pod is Pending: a refused field, a limit, or the super cluster's scheduler."""

import pytest
import yaml

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.tenancy import api
from questions import ask, changed
from tenant_league import pod

pytestmark = pytest.mark.timeout(300)  # each question is a process, which starts slowly on a busy machine


def flags(tenants, tenant):
    meta = str(tenants.super.cluster.kubeconfig)
    return ("--kubeconfig", str(tenant.cluster.kubeconfig), "--meta-cluster-kubeconfig", meta)


async def explain(tenants, tenant, namespace, name):
    return await ask("explain", "pod", f"{namespace}/{name}", *flags(tenants, tenant))


async def test_a_refused_field_is_named_with_its_remedy(tenants, blue, namespace, tmp_path):
    await blue.make(resources.PODS, "refused", namespace, **pod(hostNetwork=True))
    await blue.event("Refused", "refused", namespace)
    explained = await explain(tenants, blue, namespace, "refused")
    assert (explained["mode"], explained["cluster"], explained["node"]) == ("super cluster", "", "")
    [reason] = explained["answers"][0]["reasons"]
    assert reason.startswith("not synced: spec.hostNetwork")
    assert "tenancy.x-k8s.io/allow=hostNetwork" in reason
    file = tmp_path / "new.yaml"
    metadata = {"name": "new", "namespace": namespace}
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **pod(), "metadata": metadata}))
    explained = await ask("explain", "pod", "--pod-file", str(file), *flags(tenants, blue))
    assert explained["answers"][0]["fits"], "without the field"


async def test_what_the_super_clusters_scheduler_says_and_what_would_help(tenants, blue, namespace):
    fields = pod(nodeSelector={"disk": "tape"})
    fields["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1200", "memory": "1Gi"}}
    await blue.make(resources.PODS, "picky", namespace, **fields)

    async def look():
        found = await explain(tenants, blue, namespace, "picky")
        assert any("didn't match Pod's node affinity/selector" in line for line in found["below"]), found
        return found

    explained = await eventually(look)
    [answer] = explained["answers"]
    assert answer["changes"] == [
        {"node": answer["changes"][0]["node"], "without": ["nodes"], "moreFree": {"cpu": "200"}}
    ]
    described = changed({"metadata": {}, "spec": fields["spec"]}, answer["changes"])
    await blue.make(resources.PODS, "helped", namespace, **described)
    await blue.phase("helped", namespace)
    explained = await explain(tenants, blue, namespace, "helped")
    assert explained["cluster"] == "the super cluster"
    assert "is Running on node" in explained["below"][0]


async def test_a_limit_that_is_reached_is_named(tenants, blue, namespace):
    vc, client = "blue", tenants.super.client

    async def limit(value):
        patch = {"spec": {"limits": {"pods": value}}}
        await client.patch(api.VIRTUAL_CLUSTERS, vc, patch, namespace="default")

    await limit(0)
    try:
        await blue.make(resources.PODS, "late", namespace, **pod())

        async def look():
            found = await explain(tenants, blue, namespace, "late")
            said = (*found["below"], *found["events"])
            assert any("limit of pods" in line or "limits of the tenant" in line for line in said), found
            return found

        await eventually(look)
    finally:
        await limit(None)
    await blue.phase("late", namespace)


async def test_another_cluster_than_a_tenants_is_refused_with_the_flag(tenants, blue, namespace):
    meta = str(tenants.super.cluster.kubeconfig)
    await blue.make(resources.PODS, "any", namespace, **pod())
    with pytest.raises(programs.Refused, match="give --meta-cluster-kubeconfig or --meta-context"):
        await ask("explain", "pod", f"{namespace}/any", "--kubeconfig", str(blue.cluster.kubeconfig))
    with pytest.raises(programs.Refused, match="VirtualCluster default/nobody does not exist"):
        await ask("explain", "pod", f"{namespace}/any", *flags(tenants, blue), "--vc", "nobody")
    await tenants.super.kubectl("run", "own", "--image=example.com/app:1")
    with pytest.raises(programs.Refused, match="no running VirtualCluster of the meta cluster has this API server"):
        await ask("explain", "pod", "default/own", "--kubeconfig", meta, "--meta-cluster-kubeconfig", meta)
    await tenants.super.kubectl("delete", "pod", "own", "--wait=false")
