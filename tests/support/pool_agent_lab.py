"""A pool of two super clusters with a real node each, two tenants with pods in both, and a vn-agent for each."""

import asyncio
import contextlib
import functools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import kubelet_calls
import programs
from eventually import eventually
from hansa.local import ClusterSpec, Fleet
from hansa.local.machines import images
from hansa.programs import ports
from hansa.tenancy import installing
from hansa.tenancy.operator import cluster_versions
from league import container, pod
from leftovers import owned_folder
from operator_lab import Operator
from pool_lab import SUPER_CLUSTER, PoolLab
from programs import Kubectl
from tenant_league import clusters_up
from vn_agent_lab import LINES, NAMES, Tenant

META, SUPERS, SPACE = "agents-meta", ("r1", "r2"), "shop"
MANY = ("--tenant-connections", "600")


@dataclass
class PoolAgents:
    """The pool with its tenants; `ports` are those of the vn-agents, by super cluster."""

    pool: PoolLab
    operator: Operator
    ports: dict[str, int]
    tenants: dict[str, Tenant] = field(default_factory=dict)

    def below(self, tenant: str, cluster: str) -> tuple[Kubectl, str]:
        """kubectl of a super cluster, and the namespace of a tenant there."""
        return self.pool.supers[cluster].kubectl, self.tenants[tenant].below(SPACE)

    async def call(self, cluster: str, path: str, tenant: str) -> tuple[int, str]:
        """A raw call of the vn-agent of a super cluster by a tenant."""
        return await kubelet_calls.call(self.ports[cluster], path, certificate=self.tenants[tenant].certificate)

    async def add(self, name: str, kubectl: Path) -> None:
        """Create a tenant with a namespace in both super clusters, and the same pods in each."""
        vc = await self.operator.phase(
            (await self.operator.create(name, "default", clusterVersionName="cv-sample-np")).key
        )
        kubeconfig, pair = (self.pool.folder / f"{name}.{kind}" for kind in ("kubeconfig", "pem"))
        kubeconfig.write_bytes((await self.operator.secret(vc, "admin-kubeconfig"))["admin-kubeconfig"])
        found = await self.operator.secret(vc, "apiserver-ca")
        pair.write_bytes(found["tls.crt"] + found["tls.key"])
        one = self.tenants[name] = Tenant(vc, Kubectl(kubectl, kubeconfig), pair)
        await one.kubectl("create", "namespace", SPACE)
        made = await one.kubectl.get("namespace", SPACE)
        await self.pool.decide(SPACE, made["metadata"]["uid"], *SUPERS, vc=name)
        await eventually(lambda: one.kubectl("-n", SPACE, "get", "serviceaccount", "default"), within=60)
        for cluster in SUPERS:
            box = container(image=images.BUSYBOX, args=["sh", "-c", LINES.replace("TENANT", f"{name} in {cluster}")])
            web = container(image=images.AGNHOST, args=["netexec", "--http-port=8080"])
            for kind, spec in (("box", box), ("web", web)):
                obj = pod(f"{kind}-{cluster}", containers=[spec], terminationGracePeriodSeconds=0)
                obj["metadata"]["annotations"] = {SUPER_CLUSTER: cluster}
                await one.kubectl("-n", SPACE, "create", "-f", "-", stdin=json.dumps(obj))

    async def running(self) -> None:
        """Wait until all pods run, as their tenants see them."""
        for one in self.tenants.values():
            await one.kubectl("-n", SPACE, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=180s")

    async def remove(self, name: str) -> None:
        """Delete a tenant, and wait until its control plane is gone."""
        if (one := self.tenants.pop(name, None)) is not None:
            await self.operator.delete(one.vc)


@contextlib.asynccontextmanager
async def opened(fleet: Fleet, kubectl: Path, folder: Path) -> AsyncIterator[PoolAgents]:
    """The pool with everything running."""
    chosen = dict(zip(SUPERS, ports.choose(len(SUPERS), taken=(), seed=str(folder)), strict=True))
    wishes = [ClusterSpec(META, scheduler=False), *(ClusterSpec(f"agents-{one}", real_nodes=1) for one in SUPERS)]
    async with contextlib.AsyncExitStack() as stack:
        sides = await stack.enter_async_context(clusters_up(fleet, kubectl, wishes))
        meta, supers = sides[META], {one: sides[f"agents-{one}"] for one in SUPERS}
        await installing.install(meta.client, cluster_versions.samples())
        agents = {one: (ports.LOOPBACK, port) for one, port in chosen.items()}
        pool = PoolLab(meta, supers, folder, agents=agents)
        await asyncio.gather(*(pool.join(one) for one in SUPERS))
        authorities = folder / "authorities.crt"
        authorities.write_bytes(
            b"".join((one.cluster.folder / "pki" / "ca.crt").read_bytes() for one in supers.values())
        )
        trusted = ("--vn-agent-ca", str(authorities))
        operator = Operator(meta.client, meta.cluster.kubeconfig, stack.enter_context(owned_folder()), trusted)
        await operator.start()
        stack.push_async_callback(operator.stop)
        await pool.start()
        stack.push_async_callback(pool.stop)
        lab = PoolAgents(pool, operator, chosen)
        for name, port in chosen.items():
            agent = programs.hansa(
                "vn-agent",
                *("--super-master-kubeconfig", str(supers[name].cluster.kubeconfig)),
                *("--meta-cluster-kubeconfig", str(meta.cluster.kubeconfig)),
                *("--address", ports.LOOPBACK, "--port", str(port), *MANY),
                log=folder / f"vn-agent-{name}.log",
            )
            await stack.enter_async_context(agent)
        for name in NAMES:
            stack.push_async_callback(functools.partial(lab.remove, name))
            await lab.add(name, kubectl)
        await lab.running()
        yield lab
