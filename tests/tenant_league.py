"""A super cluster and tenants as a person sees them: kubectl for each, their VirtualClusters, and the syncer."""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import programs
from eventually import eventually
from hansa.kube.objects import Key
from hansa.tenancy import api
from league import Member
from programs import Hansa, Refused

AGENT = "hansa-vc-syncer"
OWN_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass
class Tenant(Member):
    """A tenant's control plane, and its key in the super cluster."""

    key: str

    def below(self, namespace: str = "default") -> str:
        """The super namespace of one of its namespaces."""
        return f"{self.key}-{namespace}"


@dataclass
class Tenants:
    """The super cluster, which is the meta cluster, too; tenants by the names of their VirtualClusters; the syncer."""

    super: Member
    folder: Path
    tenants: dict[str, Tenant] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    program: Hansa | None = None

    @property
    def log(self) -> Path:
        return self.folder / "vc-syncer.log"

    async def add(self, name: str, member: Member, **annotations: str) -> Tenant:
        """A VirtualCluster for a cluster that is there already, as a manager would leave it."""
        key = await self.announce(name, member, **annotations)
        tenant = self.tenants[name] = Tenant(member.cluster, member.kubectl, key)
        return tenant

    async def announce(self, name: str, member: Member, **annotations: str) -> str:
        """Make the VirtualCluster; its key."""
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
                "spec": {"clusterVersionName": "cv-sample-np"},
            },
            verb="create",
        )
        made = await self.super.kubectl.get("vc", name)
        key = api.root_namespace(Key("default", name), made["metadata"]["uid"])
        status = f'{{"status": {{"phase": "Running", "clusterNamespace": "{key}"}}}}'
        await self.super.kubectl("patch", "vc", name, "--subresource", "status", "--type", "merge", "-p", status)
        return key

    async def start(self, *flags: str) -> None:
        """Start the syncer, also again."""
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
                found = await self.super.find("namespace", tenant.below(namespace))
                assert found is not None, f"there is no namespace {tenant.below(namespace)}"
        return True

    async def stop(self) -> None:
        """End the syncer politely."""
        if self.program is not None:
            code = await self.program.stop()
            assert code == 0, f"vc-syncer ended with {code}: {self.log.read_text()[-4000:]}"
            self.program = None

    async def kill(self) -> None:
        """End the syncer as a crash does."""
        if self.program is not None:
            self.program.kill()
            await self.program.ended()
            self.program = None


async def there(member: Member, *what: str, namespace: str = "", within: float = 40.0) -> Any:
    """Wait until an object is there."""

    async def look() -> Any:
        found = await member.find(*what, namespace=namespace)
        assert found is not None, f"{' '.join(what)} is not in {namespace} of {member.name}"
        return found

    return await eventually(look, within=within)


async def gone(member: Member, *what: str, namespace: str = "", within: float = 40.0) -> None:
    """Wait until an object is not there any more."""

    async def look() -> bool:
        found = await member.find(*what, namespace=namespace)
        assert found is None, f"{' '.join(what)} is still in {namespace} of {member.name}: {found['metadata']}"
        return True

    await eventually(look, within=within)


async def phase(
    member: Member, pod: str, wanted: str = "Running", *, namespace: str = "default", within: float = 40.0
) -> Any:
    """Wait until a pod is in a phase; the pod."""

    async def look() -> Any:
        found = await member.find("pod", pod, namespace=namespace)
        assert found is not None, f"there is no pod {pod} in {member.name}"
        assert found["status"].get("phase") == wanted, found["status"]
        return found

    return await eventually(look, within=within)
