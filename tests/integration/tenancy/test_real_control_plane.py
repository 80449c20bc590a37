"""A tenant's control plane as pods on a real node, from the sample ClusterVersion to `kubectl get ns`."""

from pathlib import Path

import pytest

import real_machine
import virtual_clusters
from hansa import local
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.local import Cluster, ClusterSpec, Fleet
from hansa.local.machines import oci
from hansa.local.machines.command import run
from hansa.local.machines.fabric import Fabric
from hansa.local.machines.oci import Image
from hansa.tenancy import cluster_versions, installing
from hansa.tenancy.statefulset import StatefulSets
from kubectl_vc import KubectlVc, cluster_of
from operator_loop import operator

PROGRAMS = {"etcd": "etcd", "apiServer": "kube-apiserver", "controllerManager": "kube-controller-manager"}


@pytest.fixture
async def archive(fleet: Fleet, tmp_path: Path) -> Path:
    """The images that the sample names, made of the programs that local clusters use."""
    programs = await local.binaries.ensure(list(PROGRAMS.values()), sources=fleet.sources)
    spec = cluster_versions.samples()[0].spec
    images = []
    for bundle, program in PROGRAMS.items():
        [container] = spec[bundle]["statefulset"]["spec"]["template"]["spec"]["containers"]
        images.append(Image(container["image"], {f"/usr/local/bin/{program}": programs[program]}))
    path = tmp_path / "control-plane.tar"
    oci.build(images, path)
    return path


@pytest.fixture
async def super_cluster(fleet: Fleet, archive: Path, tmp_path: Path):
    real_machine.tools(tmp_path)
    try:
        [made] = await fleet.up([ClusterSpec("pods", real_nodes=1, images=(str(archive),))])
        yield made
    finally:
        await fleet.down(["pods"])


async def test_a_control_plane_of_pods_serves_its_tenant(
    super_cluster: Cluster, fleet: Fleet, kubectl: Path, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "vc-1.kubeconfig"
    manifest = virtual_clusters.virtual_cluster("vc-sample-1", "default").to_json().decode()
    vc = KubectlVc(kubectl, super_cluster.kubeconfig, folder=tmp_path)
    async with super_cluster.client("hansa-test") as client:
        await installing.install(client, cluster_versions.samples())
        async with operator(client, StatefulSets(client)):
            told = await vc("create", "-f", "-", "-o", str(kubeconfig), "--timeout", "100s", stdin=manifest)
            assert [f"{name} is ready" in told for name in ("etcd", "apiserver")] == [True, True]
            assert cluster_of(kubeconfig)["server"] == await _node_port(client, told)
            inside = Fabric(fleet.state.root).host("pods", 0)
            told = await run("ip", "netns", "exec", inside, str(kubectl), f"--kubeconfig={kubeconfig}", "get", "ns")
            names = [line.split()[0] for line in told.splitlines()[1:]]
            assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def _node_port(client: Client, told: str) -> str:
    [node] = (await client.list(resources.NODES)).items
    [address] = [one["address"] for one in node.status["addresses"] if one["type"] == "InternalIP"]
    services = (await client.list(resources.SERVICES, fields="metadata.name=apiserver-svc")).items
    return f"https://{address}:{services[0].spec['ports'][0]['nodePort']}"
