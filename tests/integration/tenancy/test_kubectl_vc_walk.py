"""`kubectl vc` with a running manager whose control planes are processes: create, upgrade and delete a tenant."""

import pytest
import yaml

from kubectl_vc import KubectlVc, cluster_of
from programs import Kubectl, Refused
from virtual_clusters import virtual_cluster


@pytest.fixture
def vc(kubectl, cluster, manager, tmp_path):
    return KubectlVc(kubectl, cluster.kubeconfig, folder=tmp_path)


async def test_a_tenant_is_made_entered_upgraded_and_deleted(vc, meta, town, kubectl, tmp_path):
    out = tmp_path / "vc-1.kubeconfig"
    wanted = yaml.safe_dump(virtual_cluster("vc-sample-1", town).to_dict())
    output = await vc("create", "-f", "-", "-o", str(out), stdin=wanted)
    assert output.splitlines()[-1] == f"{out} written, for server {cluster_of(out)['server']}"
    names = await Kubectl(kubectl, out)("get", "ns", "-o", "name")
    assert names.split() == [
        f"namespace/{name}" for name in ("default", "kube-node-lease", "kube-public", "kube-system")
    ]
    assert await Kubectl(kubectl, out)("config", "current-context") == "default\n"

    assert f"{town}   vc-sample-1   Running" in await vc("list", "-A")
    where = f"{town}/vc-sample-1"
    assert await vc("exec", where, "--", str(kubectl), "get", "ns", "-o", "name") == names
    again = await vc("create", "-f", "-", "-o", str(out), stdin=wanted)
    assert f"VirtualCluster {where} exists already" in again

    output = await vc("upgrade", where, "--cluster-version", "cv-sample-lb")
    assert output.splitlines()[-1] == f"VirtualCluster {where} runs ClusterVersion cv-sample-lb"
    assert await Kubectl(kubectl, out)("get", "ns", "-o", "name") == names

    output = await vc("delete", where)
    assert output.splitlines()[-1] == f"VirtualCluster {where} deleted"
    with pytest.raises(Refused):
        await Kubectl(kubectl, out)("get", "ns", "--request-timeout=2s")
    with pytest.raises(Refused, match="not found"):
        await vc("get", where)
