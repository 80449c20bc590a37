"""A tenant's control plane as pods on a real node, from the sample ClusterVersion to `kubectl get ns`."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import real_machine
import virtual_clusters
from eventually import eventually
from hansa import local
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName
from hansa.local import Cluster, ClusterSpec, Fleet
from hansa.local.machines import oci
from hansa.local.machines.command import Failed, run
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.oci import Image
from hansa.tenancy import installing
from hansa.tenancy.operator import cluster_versions
from hansa.tenancy.operator.controller import VirtualClusters
from hansa.tenancy.operator.statefulset import StatefulSets
from kubectl_vc import KubectlVc, cluster_of
from operator_loop import operator

PROGRAMS = {"etcd": "etcd", "apiServer": "kube-apiserver", "controllerManager": "kube-controller-manager"}
NAME = "vc-sample-1"
WITHIN = 110.0  # seconds; images are unpacked when they are first needed

pytestmark = pytest.mark.timeout(400)  # a cluster with a real node, and images of 200 MB, on a machine that may be busy


@dataclass(frozen=True)
class Tenant:
    """A tenant with the kubeconfig that `kubectl vc create` wrote, and a place from which its node is reached."""

    super_cluster: Client
    manager: VirtualClusters
    kubectl: Path
    kubeconfig: Path
    inside: str
    output: str

    async def __call__(self, *arguments: str) -> str:
        """Run kubectl as the tenant's administrator."""
        line = (str(self.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments)
        return await run("ip", "netns", "exec", self.inside, *line)


@pytest.fixture(scope="module")
async def archive(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images that the sample names, made of the programs that local clusters use."""
    programs = await local.binaries.ensure(list(PROGRAMS.values()), sources=fleet.sources)
    spec = cluster_versions.samples()[0].spec
    images = []
    for bundle, program in PROGRAMS.items():
        [container] = spec[bundle]["statefulset"]["spec"]["template"]["spec"]["containers"]
        images.append(Image(container["image"], {f"/usr/local/bin/{program}": programs[program]}))
    path = tmp_path_factory.mktemp("images") / "control-plane.tar"
    oci.build(images, path)
    return path


@pytest.fixture(scope="module")
async def super_cluster(
    fleet: Fleet, archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cluster]:
    real_machine.tools(tmp_path_factory.mktemp("state"))
    try:
        [made] = await fleet.up([ClusterSpec("pods", real_nodes=1, images=(str(archive),))])
        yield made
    finally:
        await fleet.down([name for name in fleet.names() if name == "pods"])


@pytest.fixture(scope="module")
async def tenant(
    super_cluster: Cluster, fleet: Fleet, kubectl: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Tenant]:
    folder = tmp_path_factory.mktemp("tenant")
    kubeconfig = folder / "vc-1.kubeconfig"
    manifest = virtual_clusters.virtual_cluster(NAME, "default").to_json().decode()
    vc = KubectlVc(kubectl, super_cluster.kubeconfig, folder=folder)
    async with super_cluster.client("hansa-test") as client:
        await installing.install(client, cluster_versions.samples())
        vn_agent_ca = (super_cluster.folder / "pki" / "ca.crt").read_bytes()
        async with operator(client, StatefulSets(client, vn_agent_ca=vn_agent_ca)) as manager:
            output = await vc("create", "-f", "-", "-o", str(kubeconfig), "--timeout", f"{WITHIN:g}s", stdin=manifest)
            yield Tenant(client, manager, kubectl, kubeconfig, HostNetwork(fleet.state.root).host("pods", 0), output)


async def test_a_control_plane_of_pods_serves_its_tenant(tenant: Tenant) -> None:
    assert [f"{name} is ready" in tenant.output for name in ("etcd", "apiserver")] == [True, True]
    [node] = (await tenant.super_cluster.list(resources.NODES)).items
    [address] = [one["address"] for one in node.status["addresses"] if one["type"] == "InternalIP"]
    [service] = (await tenant.super_cluster.list(resources.SERVICES, fields="metadata.name=apiserver-svc")).items
    port = service.spec["ports"][0]["nodePort"]
    assert cluster_of(tenant.kubeconfig)["server"] == f"https://{address}:{port}"
    names = [line.split()[0] for line in (await tenant("get", "ns")).splitlines()[1:]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


async def test_its_controllers_work(tenant: Tenant) -> None:
    await tenant("create", "deployment", "web", "--image=example.com/web:1")

    async def has_pod() -> bool:
        return "pod/web-" in await tenant("get", "pods", "-o", "name")

    await eventually(has_pod)


async def test_a_new_certificate_is_served_and_the_kubeconfig_goes_on(tenant: Tenant) -> None:
    [service] = (await tenant.super_cluster.list(resources.SERVICES, fields="metadata.name=apiserver-svc")).items
    root = service.namespace
    before = await tenant.super_cluster.get(resources.PODS, "apiserver-0", namespace=root)
    await tenant.super_cluster.delete(resources.SECRETS, "apiserver-ca", namespace=root)
    tenant.manager.requeue(NamespacedName("default", NAME))

    async def is_made_anew() -> bool:
        pods = (await tenant.super_cluster.list(resources.PODS, namespace=root)).items
        return any(one.name == "apiserver-0" and one.uid != before.uid for one in pods)

    async def serves() -> bool:
        try:
            return "deployment.apps/web" in await tenant("get", "deployments", "-o", "name", "--request-timeout=5s")
        except Failed:
            return False

    await eventually(is_made_anew, within=WITHIN)
    await eventually(serves, within=WITHIN)
