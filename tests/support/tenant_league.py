"""A super cluster and tenants, kubectl and a client for each, their VirtualClusters, and `hansa vc-syncer`."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import programs
from eventually import eventually
from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.local import ClusterSpec, Fleet
from hansa.tenancy import api
from hansa.tenancy.syncing.service_ranges import SERVICE_CIDRS
from league import Member
from programs import Hansa, Kubectl, Refused

AGENT = "hansa-vc-syncer"
OWN_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
WITHIN = 60.0  # seconds; a machine that runs many clusters at once is slow


@dataclass
class Side(Member):
    """A cluster with kubectl, and with a client, which is faster."""

    client: Client

    async def make(self, resource: Resource, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
        """Create an object; `metadata` adds to its name."""
        metadata = {"name": name, **fields.pop("metadata", {})}
        made = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}
        return (await self.client.create(resource, Object.of(made), namespace=namespace)).to_dict()

    async def look(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any] | None:
        """An object, or None."""
        try:
            return (await self.client.get(resource, name, namespace=namespace)).to_dict()
        except errors.NotFound:
            return None

    async def there(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        when: Callable[[dict[str, Any]], object] = lambda _: True,
        within: float = WITHIN,
    ) -> dict[str, Any]:
        """Wait until an object exists and `when` holds; the object."""

        async def look() -> dict[str, Any]:
            found = await self.look(resource, name, namespace)
            assert found is not None, f"{resource} {namespace}/{name} is not in {self.name}"
            assert when(found), f"{resource} {namespace}/{name} of {self.name} is {found}"
            return found

        return await eventually(look, within=within)

    async def gone(self, resource: Resource, name: str, namespace: str = "", *, uid: str = "") -> None:
        """Wait until an object, or the one with this uid, is deleted."""

        async def look() -> bool:
            found = await self.look(resource, name, namespace)
            assert found is None or (uid and found["metadata"]["uid"] != uid), f"{found} is still in {self.name}"
            return True

        await eventually(look, within=WITHIN)

    async def phase(self, pod: str, namespace: str = "default", wanted: str = "Running") -> dict[str, Any]:
        """Wait until a pod is in a phase; the pod."""
        return await self.there(resources.PODS, pod, namespace, when=lambda found: found["status"]["phase"] == wanted)

    async def event(self, reason: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """Wait for an Event about an object."""

        async def look() -> dict[str, Any]:
            selector = f"reason={reason},involvedObject.name={name}"
            page = await self.client.list(resources.EVENTS, namespace=namespace, fields=selector)
            assert page.items, f"there is no event {reason} about {name} in {self.name}"
            return page.items[0].to_dict()

        return await eventually(look, within=WITHIN)

    @contextlib.asynccontextmanager
    async def watched(self, resource: Resource, namespace: str = "") -> AsyncIterator[list[Object]]:
        """Every version of the objects, in the order of a watch, for as long as the block lasts."""
        versions: list[Object] = []
        synced = asyncio.Event()

        async def watch() -> None:
            async with contextlib.aclosing(watching.watch(self.client, resource, namespace=namespace)) as changes:
                async for change in changes:
                    if isinstance(change, watching.Synced):
                        synced.set()
                    elif isinstance(change, watching.Added | watching.Modified | watching.Deleted):
                        versions.append(change.obj)

        task = asyncio.create_task(watch())
        try:
            await asyncio.wait_for(synced.wait(), WITHIN)
            yield versions
        finally:
            task.cancel()
            await asyncio.wait([task])


async def service_cidr(side: Side) -> str:
    """The service range of a cluster."""
    found: str = (await side.client.get(SERVICE_CIDRS, "kubernetes")).spec["cidrs"][0]
    return found


@contextlib.asynccontextmanager
async def clusters_up(fleet: Fleet, kubectl: Path, wishes: Iterable[ClusterSpec]) -> AsyncIterator[dict[str, Side]]:
    """Clusters by name, for as long as the block lasts."""
    async with contextlib.AsyncExitStack() as stack:
        made = await fleet.up(list(wishes))
        stack.push_async_callback(fleet.down, [one.name for one in made])
        sides = {}
        for one in made:
            client = await stack.enter_async_context(one.client("hansa-test"))
            sides[one.name] = Side(one, Kubectl(kubectl, one.kubeconfig), client)
        yield sides


@dataclass
class Tenant(Side):
    """A tenant's control plane, and its key in the super cluster."""

    key: str

    def below(self, namespace: str = "default") -> str:
        """The super namespace of one of its namespaces."""
        return f"{self.key}-{namespace}"


@dataclass
class Tenants:
    """The super cluster, which is the meta cluster, too; tenants by the names of their VirtualClusters; the syncer."""

    super: Side
    folder: Path
    tenants: dict[str, Tenant] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    program: Hansa | None = None

    @property
    def log(self) -> Path:
        return self.folder / "vc-syncer.log"

    async def add(self, name: str, member: Side, **annotations: str) -> Tenant:
        """Create a VirtualCluster with an existing control plane, in the state in which the manager leaves it."""
        key = await self.announce(name, member, **annotations)
        tenant = self.tenants[name] = Tenant(member.cluster, member.kubectl, member.client, key)
        return tenant

    async def announce(self, name: str, member: Side, **annotations: str) -> str:
        """Create the VirtualCluster; its key."""
        kubeconfig = base64.b64encode(member.cluster.kubeconfig.read_bytes()).decode()
        words = {"admin-kubeconfig": kubeconfig, **annotations}
        metadata = {
            "name": name,
            "namespace": "default",
            "annotations": {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()},
        }
        await self.super.kubectl.apply(
            {
                "apiVersion": "tenancy.x-k8s.io/v1alpha1",
                "kind": "VirtualCluster",
                "metadata": metadata,
                "spec": {"clusterVersionName": "cv-sample-np", "serviceCidr": await service_cidr(member)},
            },
            verb="create",
        )
        made = await self.super.kubectl.get("vc", name)
        key = api.root_namespace(NamespacedName("default", name), made["metadata"]["uid"])
        status = f'{{"status": {{"phase": "Running", "clusterNamespace": "{key}"}}}}'
        await self.super.kubectl("patch", "vc", name, "--subresource", "status", "--type", "merge", "-p", status)
        return key

    async def start(self, *flags: str) -> None:
        """Start or restart the syncer."""
        self.program = await programs.start(
            "vc-syncer",
            "--super-master-kubeconfig",
            str(self.super.cluster.kubeconfig),
            *self.flags,
            *flags,
            log=self.log,
        )

    async def ready(self) -> None:
        """Wait until every tenant's namespaces are in the super cluster."""
        await eventually(self._namespaces_are_there, within=60)

    async def _namespaces_are_there(self) -> bool:
        if self.program is None or self.program.has_ended:
            raise Refused(f"vc-syncer does not run: {self.log.read_text()[-4000:]}")
        for tenant in self.tenants.values():
            for namespace in OWN_NAMESPACES:
                found = await self.super.look(resources.NAMESPACES, tenant.below(namespace))
                assert found is not None, f"there is no namespace {tenant.below(namespace)}"
        return True

    async def stop(self) -> None:
        """End the syncer with SIGTERM."""
        if self.program is not None:
            code = await self.program.stop()
            assert code == 0, f"vc-syncer ended with {code}: {self.log.read_text()[-4000:]}"
            self.program = None

    async def kill(self) -> None:
        """End the syncer with SIGKILL."""
        if self.program is not None:
            self.program.kill()
            await self.program.ended()
            self.program = None


def pod(*, name: str = "main", metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """The fields of a pod with one container."""
    return {"metadata": metadata or {}, "spec": {"containers": [{"name": name, "image": "example.com/app:1"}], **spec}}
