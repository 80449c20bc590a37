"""Two clusters with a real node each, on joined networks, the image of Hansa, and the real helm.

Everything of Hansa runs in pods. All tests share the clusters; each release is one of a mode in a namespace of its own.
"""

import asyncio
import base64
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import real_machine
import real_tenants
from eventually import eventually
from hansa import local
from hansa.local import Cluster, ClusterSpec
from hansa.local.machines import oci
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.oci import Image
from hansa.tenancy.syncing import dns_objects
from helm import CHART, Release
from league import member
from programs import Kubectl
from walks import Walk

ROOT = Path(__file__).parents[3]
NAMES = ("lubeck", "hamburg")
NEXT = "next"  # a second tag of the same image, to which releases are upgraded
API_PORT = 6443  # of a cluster with real nodes, inside


@pytest.fixture(scope="package")
async def image():
    """The archive with the image, which is built again only if the sources changed."""
    builder = await asyncio.create_subprocess_exec(
        *(sys.executable, str(ROOT / "tools" / "build_image.py"), "--tag", NEXT),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await builder.communicate()
    assert builder.returncode == 0
    return output.decode().strip()


@dataclass
class InCluster:
    """One of the clusters, with kubectl from outside and from its network."""

    cluster: Cluster
    kubectl: Kubectl
    netns: str  # of the node, from which cluster IPs of Services are reached
    folder: Path
    helm: Path

    def release(self, namespace: str) -> Release:
        """The release in a namespace."""
        return Release(self.helm, self.cluster.kubeconfig, namespace)

    @property
    def address(self) -> str:
        """The URL of its API server on the joined networks."""
        return f"https://{Networks(self.cluster.record.slot).control_plane}:{API_PORT}"

    async def token(self, namespace: str, name: str) -> str:
        """The token in a Secret, once it is there."""

        async def look():
            found = await self.kubectl.get("-n", namespace, "secret", name)
            return base64.b64decode(found["data"]["token"]).decode()

        return await eventually(look)

    def kubeconfig(self, token: str) -> dict[str, Any]:
        """A kubeconfig for pods of the other cluster."""
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        [one] = config["clusters"]
        one["cluster"]["server"] = self.address
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        return config

    async def pods(self, namespace: str) -> dict[str, Any]:
        """The pods of a namespace by name."""
        found = await self.kubectl.get("-n", namespace, "pods")
        return {one["metadata"]["name"]: one for one in found["items"]}

    @contextlib.asynccontextmanager
    async def namespace(self, name: str):
        """A namespace for a release; the logs of its pods are printed if the block fails."""
        await self.kubectl("create", "namespace", name)
        try:
            yield
        except BaseException:
            await self.show(name)
            raise
        finally:
            await self.kubectl("delete", "namespace", name, "--timeout=120s", "--ignore-not-found")

    async def show(self, namespace: str) -> None:
        """Print pods, events and logs."""
        for line in ("get pods -o wide", "get events --sort-by=.lastTimestamp"):
            print((await self.kubectl.run("-n", namespace, *line.split()))[1].decode()[-6000:])  # noqa: T201
        for name in await self.pods(namespace):
            logs = await self.kubectl.run("-n", namespace, "logs", name, "--all-containers", "--tail=60")
            print(f"--- {self.cluster.name} {namespace}/{name}\n{logs[1].decode()}{logs[2].decode()}")  # noqa: T201


async def images_of_others(fleet: local.Fleet, path: Path) -> Path:
    """Programs of Kubernetes that the chart and Hansa start, by the names of their images."""
    found = await local.binaries.ensure(["kube-scheduler", "coredns"], sources=fleet.sources)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    scheduler = values["multiScheduler"]["schedulerImage"]
    made = [
        Image(scheduler, {"/usr/local/bin/kube-scheduler": found["kube-scheduler"]}),
        Image(dns_objects.IMAGE, {"/coredns": found["coredns"]}, entrypoint=("/coredns",)),
    ]
    oci.build(made, path)
    return path


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl, image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("incluster")
    real_machine.tools(folder)
    helm = (await local.binaries.ensure(["helm"], sources=fleet.sources))["helm"]
    planes = await real_tenants.archive(fleet, folder / "control-plane.tar")
    named = await images_of_others(fleet, folder / "others.tar")
    specs = [
        ClusterSpec("lubeck", real_nodes=1, join_pods=True, images=(image, str(planes), str(named))),
        ClusterSpec("hamburg", real_nodes=1, join_pods=True, images=(image,)),
    ]
    try:
        network = HostNetwork(fleet.state.root)
        yield {
            one.name: InCluster(one, member(one, kubectl).kubectl, network.host(one.name, 1), folder, helm)
            for one in await fleet.up(specs)
        }
    finally:
        await fleet.down([name for name in fleet.names() if name in NAMES])


@pytest.fixture(scope="package")
def lubeck(clusters):
    return clusters["lubeck"]


@pytest.fixture(scope="package")
def hamburg(clusters):
    return clusters["hamburg"]


@pytest.fixture(scope="module")
def walk(clusters, tmp_path_factory):
    """Runs scripts of walkthroughs for both clusters."""
    [one, *_] = clusters.values()
    made = Walk(tmp_path_factory.mktemp("walk"), (one.helm, Path(one.kubectl.argv[0])))
    made.contexts(each.cluster for each in clusters.values())
    return made
