"""Two tenants with control planes of their own over one super cluster with a real node, and `hansa vn-agent`."""

import asyncio
import contextlib
import datetime
import functools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import kubelet_calls
import programs
import real_machine
from eventually import eventually
from hansa.kube import certificates, errors
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.client import Client
from hansa.local import Cluster
from hansa.local.control_plane.pki import Pki
from hansa.local.machines import images
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.model import tenant_names
from hansa.programs import ports, relay
from hansa.programs.relay import NetnsAddress
from hansa.tenancy.api import VIRTUAL_CLUSTERS, VirtualCluster
from league import container, pod
from leftovers import owned_folder
from operator_lab import Operator
from programs import Hansa, Kubectl, Refused

NAMES = ("blue", "green")
LONG = "a-namespace-whose-name-is-so-long-that-its-copy-is-shortened-ab"  # 63 characters
LINES = 'for i in 1 2 3 4 5; do echo "line $i of TENANT"; done; echo oops >&2; sleep 1000000'
NODE = 1  # the index of the real node


@dataclass
class Tenant:
    """A tenant with kubectl, and the client certificate of its API server."""

    vc: VirtualCluster
    kubectl: Kubectl
    certificate: Path

    def below(self, namespace: str) -> str:
        """The super namespace of one of its namespaces."""
        return tenant_names.super_namespace(self.vc.root, namespace)


@dataclass
class Lab:
    """All of it."""

    cluster: Cluster
    direct: Kubectl  # of the super cluster
    operator: Operator
    folder: Path
    port: int
    kubelet_port: int
    tenants: dict[str, Tenant] = field(default_factory=dict)
    agent: Hansa | None = None

    @property
    def log(self) -> Path:
        return self.folder / "vn-agent.log"

    @property
    def pki(self) -> Pki:
        return Pki(self.cluster.folder / "pki")

    async def start(self, *flags: str, kubeconfig: Path | None = None) -> None:
        """Start the vn-agent in place of one that runs, and wait until it serves."""
        await self.stop()
        where = ("--super-master-kubeconfig", str(kubeconfig or self.cluster.kubeconfig))
        here = ("--address", ports.LOOPBACK, "--port", str(self.port))
        self.agent = await programs.start("vn-agent", *where, *here, *flags, log=self.log)

        async def serves() -> bool:
            if self.agent is None or self.agent.has_ended:
                raise Refused(f"vn-agent does not run: {self.log.read_text()[-4000:]}")
            answer = await self.call("/healthz", certificate=self.tenants["blue"].certificate)
            assert answer == (200, "ok"), answer
            return True

        await eventually(serves, within=60)

    def kubelet_mode(self) -> tuple[str, ...]:
        """The flags with which the kubelet of the node is called."""
        pair = self.issue("vn-agent", "system:masters")
        certificate, key = self.folder / "kubelet-client.crt", self.folder / "kubelet-client.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return (
            *("--kubelet-client-certificate", str(certificate), "--kubelet-client-key", str(key)),
            *("--kubelet-certificate-authority", str(self.pki.certificate("ca"))),
            *("--kubelet-port", str(self.kubelet_port), "--kubelet-server-name", f"{self.cluster.name}-real-{NODE}"),
        )

    def issue(self, user: str, group: str) -> KeyPair:
        """A client certificate of the super cluster's CA."""
        ca = KeyPair(self.pki.certificate("ca").read_bytes(), self.pki.key("ca").read_bytes())
        return certificates.issue(ca, Subject(user, (group,)), datetime.datetime.now(datetime.UTC))

    async def stop(self) -> None:
        """End the vn-agent with SIGTERM."""
        if self.agent is not None:
            code = await self.agent.stop()
            assert code == 0, f"vn-agent ended with {code}: {self.log.read_text()[-4000:]}"
            self.agent = None

    async def call(self, path: str, *, certificate: Path | None = None, method: str = "GET") -> tuple[int, str]:
        """A raw call of the vn-agent."""
        return await kubelet_calls.call(self.port, path, certificate=certificate, method=method)

    async def certificate(self, vc: VirtualCluster, name: str) -> Path:
        """The present certificate of a tenant's API server with its key, as a file."""
        found, path = await self.operator.secret(vc, "apiserver-ca"), self.folder / f"{name}.pem"
        path.write_bytes(found["tls.crt"] + found["tls.key"])
        return path

    async def add(self, name: str, kubectl: Path) -> None:
        """Create a tenant, and two namespaces with pods of the same names as those of other tenants."""
        made = await self.operator.create(name, "default", clusterVersionName="cv-sample-np")
        vc = await self.operator.phase(made.key)
        kubeconfig = self.folder / f"{name}.kubeconfig"
        kubeconfig.write_bytes((await self.operator.secret(vc, "admin-kubeconfig"))["admin-kubeconfig"])
        one = self.tenants[name] = Tenant(vc, Kubectl(kubectl, kubeconfig), await self.certificate(vc, name))
        for namespace in ("shop", LONG):
            await one.kubectl("create", "namespace", namespace)
            await eventually(functools.partial(_has_account, one.kubectl, namespace), within=60)
        box = container(image=images.BUSYBOX, args=["sh", "-c", LINES.replace("TENANT", name)])
        web = container(image=images.AGNHOST, args=["netexec", "--http-port=8080"])
        for namespace, pods in (("shop", {"box": box, "web": web}), (LONG, {"box": box})):
            for pod_name, spec in pods.items():
                obj = pod(pod_name, containers=[spec], terminationGracePeriodSeconds=0)
                await one.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(obj))

    async def remove(self, name: str) -> None:
        """Delete a tenant, and wait until its pods are gone."""
        if (one := self.tenants.pop(name, None)) is not None:
            with contextlib.suppress(errors.NotFound):  # the test deleted it
                await self.operator.meta.delete(VIRTUAL_CLUSTERS, one.vc.name, namespace=one.vc.namespace)
            await self.operator.gone(one.vc)
            await self.direct("wait", "namespace", one.below("shop"), one.below(LONG), "--for=delete", "--timeout=120s")

    async def running(self) -> None:
        """Wait until all pods run, as their tenants see them."""
        for one in self.tenants.values():
            for namespace in ("shop", LONG):
                await one.kubectl(*("-n", namespace, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=120s"))


@contextlib.asynccontextmanager
async def opened(cluster: Cluster, kubectl: Path, client: Client, folder: Path) -> AsyncIterator[Lab]:
    """The lab on a cluster with a real node, which is the meta cluster, too; without a vn-agent."""
    [port, kubelet_port] = ports.choose(2, taken=(), seed=str(folder))
    network, networks = HostNetwork(cluster.state.root), Networks(cluster.record.slot)
    inside = real_machine.host(network, cluster.name, networks, index=NODE, port=10250)
    ca = ("--vn-agent-ca", str(cluster.folder / "pki" / "ca.crt"))
    # Without the DNS of tenants, a pod named coredns is one of the super cluster.
    flags = ("--vn-agent-address", f"127.0.0.1:{port}", "--tenant-dns=false")
    syncer = ("--super-master-kubeconfig", str(cluster.kubeconfig), *flags)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_relayed(NetnsAddress("", ports.LOOPBACK, kubelet_port), inside))
        operator = Operator(client, cluster.kubeconfig, stack.enter_context(owned_folder()), ca)
        await operator.start()
        stack.push_async_callback(operator.stop)
        await stack.enter_async_context(programs.hansa("vc-syncer", *syncer, log=folder / "vc-syncer.log"))
        lab = Lab(cluster, Kubectl(kubectl, cluster.kubeconfig), operator, folder, port, kubelet_port)
        for name in NAMES:
            stack.push_async_callback(lab.remove, name)
            await lab.add(name, kubectl)
        stack.push_async_callback(lab.stop)
        await lab.running()
        yield lab


async def _has_account(kubectl: Kubectl, namespace: str) -> bool:
    code, _, err = await kubectl.run("-n", namespace, "get", "serviceaccount", "default")
    assert code == 0, err
    return True


@contextlib.asynccontextmanager
async def _relayed(listen: NetnsAddress, dial: NetnsAddress) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(*relay.command(listen, dial))
    try:
        yield
    finally:
        process.kill()
        await process.wait()
