"""Tenants on a super cluster with a real node: images of their control planes, volumes, programs in its network."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import programs
import virtual_clusters
from eventually import eventually
from hansa import local
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.local import Cluster, Fleet
from hansa.local.machines import images, oci
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.oci import Image
from hansa.model import tenant_names
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.operator import cluster_versions
from programs import Hansa, Kubectl, Refused

PROGRAMS = {"etcd": "etcd", "apiServer": "kube-apiserver", "controllerManager": "kube-controller-manager"}
WITHIN = 150.0  # seconds; images are unpacked when they are first needed, on a machine that may be busy
API_PORT = 6443  # of a cluster with real nodes, inside
FOLDER = "/var/local-volumes"  # on the node
UNPRIVILEGED = 65532


async def archive(fleet: Fleet, path: Path) -> Path:
    """The images that the sample ClusterVersions name, made of the programs that local clusters use."""
    found = await local.binaries.ensure(list(PROGRAMS.values()), sources=fleet.sources)
    spec = cluster_versions.samples()[0].spec
    made = []
    for bundle, program in PROGRAMS.items():
        [container] = spec[bundle]["statefulset"]["spec"]["template"]["spec"]["containers"]
        made.append(Image(container["image"], {f"/usr/local/bin/{program}": found[program]}))
    oci.build(made, path)
    return path


@dataclass
class Tenant:
    """A tenant with kubectl inside of the network."""

    vc: api.VirtualCluster
    kubectl: Kubectl

    def below(self, namespace: str = "default") -> str:
        """The super namespace of one of its namespaces."""
        return tenant_names.super_namespace(self.vc.root, namespace)


def inner_kubeconfig(cluster: Cluster, folder: Path) -> Path:
    """The administrator's kubeconfig of a cluster for use inside of the network."""
    path, config = folder / f"{cluster.name}.inside", yaml.safe_load(cluster.kubeconfig.read_text())
    for one in config["clusters"]:
        one["cluster"]["server"] = f"https://{Networks(cluster.record.slot).control_plane}:{API_PORT}"
    path.write_text(yaml.safe_dump(config))
    return path


@dataclass
class RealTenants:
    """The meta cluster, which is a super cluster unless the test says otherwise. Programs run on its control plane."""

    cluster: Cluster
    fleet: Fleet
    client: Client
    kubectl: Kubectl
    folder: Path
    below: Kubectl | None = None  # of another super cluster
    running: dict[str, Hansa] = field(default_factory=dict)

    @property
    def netns(self) -> str:
        """The network namespace of its control plane."""
        return HostNetwork(self.fleet.state.root).host(self.cluster.name, 0)

    @property
    def address(self) -> str:
        """The address of the host of its control plane, which pods reach."""
        return str(Networks(self.cluster.record.slot).control_plane)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig for use inside of the network."""
        return inner_kubeconfig(self.cluster, self.folder)

    def log(self, name: str) -> str:
        """The log of a program."""
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    async def start(self, program: str, *flags: str) -> None:
        """Start a program inside of the network."""
        path = self.folder / f"{program}.log"
        self.running[program] = await programs.start(program, *flags, log=path, netns=self.netns)

    async def stop(self, *names: str) -> None:
        """End these programs, or all."""
        codes = {name: await self.running.pop(name).stop() for name in names or tuple(self.running)}
        for name, code in codes.items():
            assert code == 0, f"{name} ended with {code}: {self.log(name)[-4000:]}"

    async def volumes(self, count: int) -> None:
        """Make volumes on the node, as an administrator would who has no provisioner."""
        names = [f"{FOLDER}/{number}" for number in range(count)]
        script = f"mkdir -p {' '.join(names)} && chown {UNPRIVILEGED} {' '.join(names)}"
        main = {"name": "main", "image": images.BUSYBOX, "command": ["sh", "-c", script]}
        mount = {"name": "host", "mountPath": FOLDER}
        volume = {"name": "host", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}
        spec = {"restartPolicy": "Never", "containers": [main | {"volumeMounts": [mount]}], "volumes": [volume]}
        await self.client.create(resources.PODS, _object("v1", "Pod", "volumes", "default", spec=spec))
        await self.kubectl("wait", "pod/volumes", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s")
        for number, path in enumerate(names):
            volume_spec = {
                "capacity": {"storage": "4Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": path},
            }
            await self.kubectl.apply(
                _object("v1", "PersistentVolume", f"local-{number}", spec=volume_spec).to_dict(), verb="create"
            )

    async def create(self, name: str, **spec: Any) -> Tenant:
        """Create a tenant and wait until it runs."""
        wanted = virtual_clusters.virtual_cluster(name, "default", **spec)
        # vc-manager installs the definition.
        made = await eventually(lambda: self.client.create(VIRTUAL_CLUSTERS, wanted), within=60)
        key = made.key

        async def is_running() -> api.VirtualCluster:
            vc = api.virtual_cluster(await self.client.get(VIRTUAL_CLUSTERS, key.name, namespace=key.namespace))
            assert vc.status.phase == "Running", f"{vc.status}\n{self.log('vc-manager')[-2000:]}"
            return vc

        vc = await eventually(is_running, within=WITHIN)
        secret = await self.client.get(resources.SECRETS, "admin-kubeconfig", namespace=vc.root)
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_bytes(virtual_clusters.decoded(secret, "admin-kubeconfig"))
        return Tenant(vc, Kubectl(Path(self.kubectl.argv[0]), path, netns=self.netns))

    async def run(self, tenant: Tenant, name: str, image: str, *arguments: str, namespace: str = "default") -> None:
        """Run a pod of the tenant, and wait until it is ready."""
        pod = {"terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image, "args": arguments}]}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": pod}

        async def is_created() -> bool:  # once the namespace has its service account
            await tenant.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(manifest))
            return True

        await eventually(is_created, within=60)
        await self.ready(tenant, f"pod/{name}", namespace=namespace)

    async def ready(self, tenant: Tenant, what: str, *, namespace: str = "default") -> None:
        """Wait until a pod of the tenant is ready."""
        line = ("-n", namespace, "wait", what, "--for=condition=Ready", f"--timeout={WITHIN:g}s")
        try:
            await tenant.kubectl(*line)
        except Refused as error:
            shown = await tenant.kubectl("-n", namespace, "describe", what)
            raise AssertionError(f"{error}\n{shown}\n{self.log('vc-syncer')[-4000:]}") from None

    async def inside(self, tenant: Tenant, pod: str, *command: str, namespace: str = "default") -> str:
        """Run a command in the super pod of a tenant's pod; its output."""
        return await self.kubectl("-n", tenant.below(namespace), "exec", pod, "--", *command)


def _object(version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return Object.of({"apiVersion": version, "kind": kind, "metadata": metadata, **fields})


@contextlib.asynccontextmanager
async def opened(cluster: Cluster, fleet: Fleet, kubectl: Path, folder: Path) -> AsyncIterator[RealTenants]:
    """The super cluster without programs; those that are started are ended."""
    async with cluster.client("hansa-test") as client:
        lab = RealTenants(cluster, fleet, client, Kubectl(kubectl, cluster.kubeconfig), folder)
        try:
            yield lab
        finally:
            await lab.stop()
