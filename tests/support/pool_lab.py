"""A pool for tests of the syncer: a meta cluster that is its own tenant, r1 and r2; tests decide the placements."""

import base64
import json
import secrets
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.kube.objects import NamespacedName
from hansa.tenancy import api
from programs import Hansa, Refused
from tenant_league import WITHIN, Side, Tenant, pod, service_cidr

PLACEMENTS = "scheduler.tenancy.x-k8s.io/placements"
VN_AGENTS = {"r1": ("192.0.2.1", 7001), "r2": ("192.0.2.2", 7002)}
SUPER_CLUSTER = "scheduler.tenancy.x-k8s.io/superCluster"


@dataclass
class PoolLab:
    """The clusters, and the syncers while they run."""

    meta: Side
    supers: dict[str, Side]
    folder: Path
    syncers: dict[str, Hansa] = field(default_factory=dict)
    key: str = ""
    agents: dict[str, tuple[str, int]] = field(default_factory=lambda: VN_AGENTS)

    @property
    def tenant(self) -> Tenant:
        return Tenant(self.meta.cluster, self.meta.kubectl, self.meta.client, self.key)

    async def announce(self, name: str = "blue", side: Side | None = None) -> Tenant:
        """A VirtualCluster whose control plane is the meta cluster itself, unless it is another."""
        plane = side or self.meta
        config = base64.b64encode(plane.cluster.kubeconfig.read_bytes()).decode()
        metadata = {"annotations": {"tenancy.x-k8s.io/admin-kubeconfig": config}}
        spec = {"clusterVersionName": "any", "serviceCidr": await service_cidr(plane)}
        made = await self.meta.make(api.VIRTUAL_CLUSTERS, name, "default", metadata=metadata, spec=spec)
        key = api.root_namespace(NamespacedName("default", name), made["metadata"]["uid"])
        status = {"status": {"phase": "Running", "clusterNamespace": key}}
        await self.meta.client.patch(api.VIRTUAL_CLUSTERS, name, status, namespace="default", subresource="status")
        return Tenant(plane.cluster, plane.kubectl, plane.client, key)

    async def hansa(self, *words: str) -> str:
        """Run a `hansa` command for the pool; its output."""
        log = self.folder / f"{words[0]}-{secrets.token_hex(4)}.log"
        config = str(self.meta.cluster.kubeconfig)
        program = await programs.start(*words, "--meta-kubeconfig", config, log=log)
        if await program.ended(within=120):
            raise Refused(log.read_text())
        return log.read_text()

    async def join(self, name: str, *flags: str) -> str:
        """Join a super cluster, with the rights of its account only."""
        config = str(self.supers[name].cluster.kubeconfig)
        return await self.hansa("join", name, "--kubeconfig", config, "--apply", "--without-syncer", *flags)

    async def start(self, name: str = "pool", *flags: str) -> None:
        """Start a syncer: for all super clusters, unless its flags limit it."""
        config = str(self.meta.cluster.kubeconfig)
        self.syncers[name] = await programs.start(
            "vc-syncer",
            *("--meta-cluster-kubeconfig", config, "--node-retention", "5"),
            *("--vn-agent-address", ",".join(f"{id_}={host}:{port}" for id_, (host, port) in self.agents.items())),
            *(flags or ("--pool", "--lost-after", "6")),
            log=self.log(name),
        )

    def log(self, name: str = "pool") -> Path:
        """The log of a syncer."""
        return self.folder / f"{name}.log"

    async def stop(self) -> None:
        """End all syncers with SIGTERM."""
        while self.syncers:
            name, program = self.syncers.popitem()
            code = await program.stop()
            is_new = code == -signal.SIGTERM  # it had not begun yet
            assert code == 0 or is_new, f"{name} ended with {code}: {self.log(name).read_text()[-4000:]}"

    async def namespace(self, name: str, *placed: str, key: str = PLACEMENTS) -> None:
        """A namespace with one slice in each of these super clusters, as the scheduler would leave it."""
        words = {key: json.dumps(dict.fromkeys(placed, 1))}
        made = await self.meta.make(resources.NAMESPACES, name, metadata={"annotations": words})
        await self.decide(name, made["metadata"]["uid"], *placed)

    async def place(self, name: str, *placed: str) -> None:
        """Move a namespace to other super clusters."""
        await self.say(name, json.dumps(dict.fromkeys(placed, 1)))
        made = await self.meta.client.get(resources.NAMESPACES, name)
        await self.decide(name, made.uid, *placed)

    async def decide(self, name: str, uid: str, *placed: str, vc: str = "blue") -> None:
        """Record the placements of a namespace of a VirtualCluster where the syncer reads them."""
        slices = {other: None for other in self.supers if other not in placed} | dict.fromkeys(placed, 1)
        patch = {"status": {"placements": {name: {"uid": uid, "slices": slices, "slice": {"cpu": "1"}}}}}
        await self.meta.client.patch(api.VIRTUAL_CLUSTERS, vc, patch, namespace="default", subresource="status")

    async def say(self, name: str, placements: str) -> None:
        """Write the annotation of a namespace that shows its placements."""
        patch = {"metadata": {"annotations": {PLACEMENTS: placements}}}
        await self.meta.client.patch(resources.NAMESPACES, name, patch)

    async def pod(self, namespace: str, name: str, cluster: str, *, key: str = SUPER_CLUSTER, **spec: Any) -> None:
        """A pod that is placed in a super cluster."""
        fields = pod(metadata={"annotations": {key: cluster}, "labels": {"app": name}}, **spec)
        await self.meta.make(resources.PODS, name, namespace, **fields)

    async def give(self, namespace: str, name: str, cluster: str) -> None:
        """Place a pod in another super cluster."""
        patch = {"metadata": {"annotations": {SUPER_CLUSTER: cluster}}}
        await self.meta.client.patch(resources.PODS, name, patch, namespace=namespace)

    async def reached(self, side: Side, namespace: str, service: str, addresses: set[str]) -> None:
        """Wait until a Service has these endpoints in a super cluster."""

        async def look() -> bool:
            labels = f"kubernetes.io/service-name={service}"
            below = self.tenant.below(namespace)
            page = await side.client.list(resources.ENDPOINT_SLICES, namespace=below, labels=labels)
            found = {a for one in page.items for e in one.get("endpoints") or () for a in e["addresses"]}
            assert found == addresses, f"{service} has {found} in {side.name}"
            return True

        await eventually(look, within=WITHIN)
