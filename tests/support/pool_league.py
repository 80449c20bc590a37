"""A pool for tests of the scheduler: the meta cluster, which is also a tenant; r1 and r2; `hansa vc-scheduler`."""

import base64
import json
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.tenancy import api
from programs import Hansa
from tenant_league import Side, service_cidr

SCHEDULER = "scheduler.tenancy.x-k8s.io"
PLACEMENTS, SLICE, SUPER_CLUSTER = (f"{SCHEDULER}/{word}" for word in ("placements", "slice", "superCluster"))
SEED = '{"cpu":"100m", "memory":"100Mi"}'
WITHIN = 90.0  # seconds; a machine that runs many clusters at once is slow


@dataclass
class Pool:
    """The clusters, and the scheduler while it runs."""

    meta: Side
    supers: dict[str, Side]
    folder: Path
    program: Hansa | None = None

    @property
    def log(self) -> Path:
        return self.folder / "vc-scheduler.log"

    async def start(self, *flags: str) -> None:
        """Start or restart the scheduler."""
        config = str(self.meta.cluster.kubeconfig)
        self.program = await programs.start(
            "vc-scheduler", "--kubeconfig", config, "--lost-after", "4", *flags, log=self.log
        )

    async def kill(self) -> None:
        """End the scheduler with SIGKILL."""
        if self.program is not None:
            self.program.kill()
            await self.program.ended()
            self.program = None

    async def stop(self) -> None:
        """End the scheduler with SIGTERM."""
        program, self.program = self.program, None
        if program is not None:
            code = await program.stop()
            is_new = code == -signal.SIGTERM  # it had not begun yet
            assert code == 0 or is_new, f"vc-scheduler ended with {code}: {self.log.read_text()[-4000:]}"

    async def add(self, name: str, **annotations: str) -> None:
        """Add a super cluster to the pool: a Cluster with its label, and the Secret of the same name."""
        config = base64.b64encode(self.supers[name].cluster.kubeconfig.read_bytes()).decode()
        metadata = {"name": name, "namespace": "default"}
        await self.meta.kubectl.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"admin-kubeconfig": config}},
            {
                "apiVersion": "cluster.x-k8s.io/v1alpha4",
                "kind": "Cluster",
                "metadata": {**metadata, "annotations": annotations, "labels": {"called": name}},
                "spec": {},
                "status": {"phase": "Provisioned"},
            },
        )

    async def namespace(self, name: str, quota: dict[str, str] | None = None, slice_: str = SEED, **words: str) -> None:
        """A namespace with a slice, and maybe with a quota; `words` are other annotations of the scheduler."""
        annotations = {SLICE: slice_} | {f"{SCHEDULER}/{word}": text for word, text in words.items()}
        await self.meta.make(resources.NAMESPACES, name, metadata={"annotations": annotations})
        if quota:
            await self.quota(name, **quota)
        await self.meta.there(resources.SERVICE_ACCOUNTS, "default", name, within=WITHIN)  # pods need it

    async def quota(self, namespace: str, **hard: str) -> None:
        """Set the quota of a namespace."""
        spec = {"hard": hard}
        if await self.meta.look(resources.QUOTAS, "all", namespace):
            await self.meta.client.patch(resources.QUOTAS, "all", {"spec": spec}, namespace=namespace)
        else:
            await self.meta.make(resources.QUOTAS, "all", namespace, spec=spec)

    async def placed(self, namespace: str, wanted: dict[str, int]) -> None:
        """Wait until a namespace has these slices."""

        async def look() -> bool:
            self._assert_running()
            found = await self.meta.client.get(resources.NAMESPACES, namespace)
            text = found.annotations.get(PLACEMENTS, "{}")
            assert json.loads(text) == wanted, f"{namespace} is in {text}"
            return True

        await eventually(look, within=WITHIN)

    async def placed_somehow(self, namespace: str) -> dict[str, int]:
        """Wait until a namespace has all of its slices; the number in each cluster."""

        async def look() -> dict[str, int]:
            self._assert_running()
            found = await self.meta.client.get(resources.NAMESPACES, namespace)
            conditions = {one["type"]: one["status"] for one in found.status.get("conditions", ())}
            assert conditions.get("Placed") == "True", f"{namespace} is not placed: {found.to_dict()}"
            return dict(json.loads(found.annotations[PLACEMENTS]))

        return await eventually(look, within=WITHIN)

    async def empty(self) -> None:
        """Wait until no namespace has slices, and all clusters can have some."""

        async def look() -> bool:
            changes = re.findall(r"pool cluster changed.* cluster=(\S+) state=(\S+)", self.log.read_text())
            states = dict(changes)
            assert all(states.get(name) == "open" for name in self.supers), states
            page = await self.meta.client.list(resources.NAMESPACES)
            held = [one.name for one in page.items if PLACEMENTS in one.annotations]
            assert not held, f"{held} have slices"
            return True

        await eventually(look, within=WITHIN)

    async def again(self, *flags: str) -> None:
        """Restart the scheduler with other flags, when no namespace has slices."""
        await self.empty()
        await self.stop()
        await self.start(*flags)

    async def edit(self, namespace: str, placements: dict[str, int] | None) -> None:
        """Write placements as an administrator would."""
        text = None if placements is None else json.dumps(placements)
        patch = {"metadata": {"annotations": {PLACEMENTS: text}}}
        await self.meta.client.patch(resources.NAMESPACES, namespace, patch)

    async def pod(self, namespace: str, name: str, **requests: str) -> None:
        """A pod that fits one slice exactly by default."""
        asked = requests or {"cpu": "100m", "memory": "100Mi"}
        container = {"name": "test", "image": "busybox:1.29", "resources": {"requests": asked, "limits": asked}}
        await self.meta.make(resources.PODS, name, namespace, spec={"containers": [container]})

    async def given(self, namespace: str, name: str, wanted: str = "") -> str:
        """Wait until a pod has a cluster, or this one; the cluster."""

        async def look() -> str:
            self._assert_running()
            pod = await self.meta.client.get(resources.PODS, name, namespace=namespace)
            found = pod.annotations.get(SUPER_CLUSTER, "")
            assert found, f"{name} has no cluster"
            assert not wanted or found == wanted, f"{name} is in {found}"
            return found

        return await eventually(look, within=WITHIN)

    async def condition(self, namespace: str, reason: str, *, message: str = "") -> dict[str, Any]:
        """Wait until the condition Placed of a namespace has this reason and a message that begins with `message`."""

        async def look() -> dict[str, Any]:
            found = await self.meta.client.get(resources.NAMESPACES, namespace)
            conditions: dict[str, dict[str, Any]] = {one["type"]: one for one in found.status.get("conditions", ())}
            assert conditions.get("Placed", {}).get("reason") == reason, conditions
            assert conditions["Placed"]["message"].startswith(message), conditions
            return conditions["Placed"]

        return await eventually(look, within=WITHIN)

    async def logged(self, text: str, *, after: int) -> None:
        """Wait until the scheduler's log contains a text, from an offset on."""

        async def look() -> bool:
            return text in self.log.read_bytes()[after:].decode(errors="replace")

        await eventually(look, within=WITHIN)

    def _assert_running(self) -> None:
        if self.program is not None and self.program.has_ended:
            pytest.fail(f"vc-scheduler does not run: {self.log.read_text()[-4000:]}")


async def announce(meta: Side, name: str = "blue", tenant: Side | None = None) -> None:
    """The VirtualCluster of a tenant whose control plane is the meta cluster, unless it is another."""
    config = base64.b64encode((tenant or meta).cluster.kubeconfig.read_bytes()).decode()
    made = await meta.make(
        api.VIRTUAL_CLUSTERS,
        name,
        "default",
        metadata={"annotations": {"tenancy.x-k8s.io/admin-kubeconfig": config}},
        spec={"clusterVersionName": "any", "serviceCidr": await service_cidr(tenant or meta)},
    )
    key = api.root_namespace(Object.of(made).key, made["metadata"]["uid"])
    status = {"status": {"phase": "Running", "clusterNamespace": key}}
    await meta.client.patch(api.VIRTUAL_CLUSTERS, name, status, namespace="default", subresource="status")


def bound(obj: Object, node: str) -> Object:
    """The binding of a pod to a node."""
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": obj.name, "namespace": obj.namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )
