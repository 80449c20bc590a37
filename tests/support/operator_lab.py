"""The tenant operator in tests: `hansa vc-manager` as a program, and tenants through their own kubeconfigs."""

import base64
import contextlib
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import virtual_clusters
from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.kube.objects import NamespacedName, Object
from hansa.programs import process
from hansa.programs.process import Process
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, VirtualCluster
from hansa.tenancy.operator.process import folder as folders
from hansa.tenancy.operator.process.folder import Folder
from programs import Hansa

COMPONENTS = {"etcd", "kube-apiserver", "kube-controller-manager"}
WITHIN = 90.0  # seconds; a machine that runs many clusters at once is slow


@dataclass
class Operator:
    """The program, the cluster that it works on, and where it keeps control planes."""

    meta: Client
    kubeconfig: Path
    folder: Path
    flags: tuple[str, ...] = ()
    program: Hansa | None = None

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def versions(self) -> Path:
        """Where ClusterVersions find folders of programs."""
        return self.folder / "binaries"

    @property
    def log(self) -> Path:
        return self.folder / "vc-manager.log"

    async def start(self, *more: str) -> None:
        """Start or restart it."""
        where = ("--kubeconfig", str(self.kubeconfig), "--state", str(self.state), "--binaries", str(self.versions))
        self.program = await programs.start("vc-manager", *where, "--etcd-fast", *self.flags, *more, log=self.log)

    async def kill(self) -> None:
        """End it with SIGKILL."""
        if self.program is not None:
            self.program.kill()
            await self.program.ended()

    async def stop(self) -> None:
        """End it with SIGTERM."""
        if self.program is not None and not self.program.has_ended:
            assert await self.program.stop() == 0, self.log.read_text()[-4000:]

    async def create(self, name: str, namespace: str, /, **wishes: Any) -> VirtualCluster:
        """Create a VirtualCluster."""
        made = await self.meta.create(VIRTUAL_CLUSTERS, virtual_clusters.virtual_cluster(name, namespace, **wishes))
        return api.virtual_cluster(made)

    async def find(self, key: NamespacedName) -> VirtualCluster:
        """The VirtualCluster."""
        return api.virtual_cluster(await self.meta.get(VIRTUAL_CLUSTERS, key.name, namespace=key.namespace))

    async def phase(self, key: NamespacedName, phase: str = "Running", *, reason: str = "") -> VirtualCluster:
        """Wait until a tenant is in a phase."""

        async def look() -> VirtualCluster:
            vc = await self.find(key)
            assert vc.status.phase == phase, f"{key} is {vc.status}; the manager says:\n{self.log.read_text()[-3000:]}"
            assert reason in ("", vc.status.reason), f"{key} is {vc.status}"
            return vc

        return await eventually(look, within=WITHIN)

    async def gone(self, vc: VirtualCluster) -> None:
        """Wait until the VirtualCluster, its namespaces and its processes are gone."""

        async def look() -> bool:
            for resource, name, namespace in (
                (VIRTUAL_CLUSTERS, vc.name, vc.namespace),
                (resources.NAMESPACES, vc.root, ""),
            ):
                with contextlib.suppress(errors.NotFound):
                    left = await self.meta.get(resource, name, namespace=namespace)
                    raise AssertionError(f"{left} is still there: {self.log.read_text()[-2000:]}")
            return True

        await eventually(look, within=WITHIN)
        assert not self.tenant_folder(vc).path.exists()
        assert self.processes(vc) == {}

    async def delete(self, vc: VirtualCluster) -> None:
        """Delete a VirtualCluster, and wait until all of it is gone."""
        await self.meta.delete(VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace, uid=vc.uid)
        await self.gone(vc)

    async def secret(self, vc: VirtualCluster, name: str) -> dict[str, bytes]:
        """The content of a Secret of the root namespace."""
        found = await self.meta.get(resources.SECRETS, name, namespace=vc.root)
        return {key: base64.b64decode(value) for key, value in found.get("data").items()}

    @contextlib.asynccontextmanager
    async def client(self, vc: VirtualCluster) -> AsyncIterator[Client]:
        """A client of the tenant, with the kubeconfig of its Secret."""
        text = (await self.secret(vc, "admin-kubeconfig"))["admin-kubeconfig"]
        path = self.folder / f"{vc.name}.kubeconfig"
        path.write_bytes(text)
        async with Client(kubeconfig.from_files(path), user_agent="tenant") as client:
            yield client

    def tenant_folder(self, vc: VirtualCluster) -> Folder:
        return folders.folder(self.state, vc)

    def processes(self, vc: VirtualCluster) -> dict[str, Process]:
        """The running processes of a tenant."""
        owner = self.tenant_folder(vc).id
        return {name: one for (whose, name), one in process.running(self.state).items() if whose == owner}

    async def whole(self, vc: VirtualCluster, components: Collection[str] = COMPONENTS) -> dict[str, Process]:
        """Wait until every component of a tenant runs; the processes."""

        async def look() -> dict[str, Process]:
            found = self.processes(vc)
            assert set(found) >= set(components), f"{set(components) - set(found)} of {vc.key} does not run"
            return found

        return await eventually(look, within=WITHIN)

    async def events(self, vc: VirtualCluster) -> dict[str, Object]:
        """The messages of Events about a VirtualCluster, by reason."""
        fields = f"involvedObject.uid={vc.uid}"
        page = await self.meta.list(resources.EVENTS, namespace=vc.namespace, fields=fields)
        return {str(one.get("reason")): one for one in page.items}
