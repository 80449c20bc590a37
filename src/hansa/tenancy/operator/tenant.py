"""The steps of reconciling one VirtualCluster: finalizer, root namespace, version, certificates, provisioner, removal.

The controller calls them in this order. Each step is idempotent, so a reconcile after a crash continues where the
last one stopped. Status and events are the controller's.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime import clock
from hansa.tenancy import api
from hansa.tenancy.api import VIRTUAL_CLUSTERS, KubeletClient, Network, VirtualCluster
from hansa.tenancy.operator import kubelet_client, pki, root_namespace, secrets, version_choice
from hansa.tenancy.operator.pki import Identity, Pki
from hansa.tenancy.operator.provisioning import (
    DesiredControlPlane,
    Endpoint,
    ExistingKubeconfig,
    Progress,
    Provisioner,
    Ready,
    Removed,
)
from hansa.tenancy.operator.version_choice import Choice

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A VirtualCluster and its provisioner."""

    vc: VirtualCluster
    client: Client
    provisioner: Provisioner
    clock: clock.Clock

    @property
    def finalizer(self) -> str:
        """The finalizer that blocks the deletion of the VirtualCluster until its control plane is removed."""
        return f"{keys.VC_FINALIZER}{self.provisioner.name}"

    async def add_finalizer(self) -> Object | None:
        """Add the finalizer before anything is created; the updated object, or None if it has the finalizer."""
        vc = self.vc.object
        if self.finalizer in vc.metadata.finalizers:
            return None
        return await self._patch({"finalizers": [*vc.metadata.finalizers, self.finalizer]})

    async def choose_version(self) -> Choice:
        """Ensure the root namespace and choose the ClusterVersion; a new choice is stored in the root namespace."""
        await root_namespace.ensure(self.client, self.vc)
        kept = await version_choice.read(self.client, self.vc.root)
        choice = version_choice.choose(self.vc, await self._live_version(), kept)
        if choice.is_new:
            await version_choice.keep(self.client, self.vc.root, choice.version)
        return choice

    async def ensure(
        self, choice: Choice, services: Network, *, records: bool = True
    ) -> Ready | Progress | KubeletClient:
        """Create, repair or upgrade the control plane and its Secrets.

        A KubeletClient has to be recorded first; without `records` there is none.
        """
        desired = DesiredControlPlane(self.vc, choice.version, self.vc.root, services)
        match await self.provisioner.locate(desired):
            case Progress() as progress:
                return progress
            case ExistingKubeconfig(kubeconfig):
                wanted = pki.secret(desired.root, pki.ADMIN, "Opaque", {pki.ADMIN: kubeconfig})
                await secrets.keep(self.client, [wanted], await secrets.read(self.client, desired.root))
                return await self.provisioner.ensure(desired, Pki({}, {pki.ADMIN: kubeconfig}))
            case Endpoint() as endpoint:
                made = await self._keys(desired, endpoint)
                due = kubelet_client.due(self.vc, made) if records else None
                return due or await self.provisioner.ensure(desired, made)

    async def remove(self) -> Removed | Progress:
        """Remove the control plane and the root namespace, then the finalizer."""
        if self.finalizer not in self.vc.object.metadata.finalizers:
            return Removed()
        match await self.provisioner.remove(self.vc):
            case Progress() as progress:
                return progress
            case Removed() as removed:
                await root_namespace.remove(self.client, self.vc)
        with contextlib.suppress(errors.NotFound):
            await self._patch({"finalizers": [f for f in self.vc.object.metadata.finalizers if f != self.finalizer]})
        return removed

    async def label_applied(self, choice: Choice) -> Object | None:
        """Record the applied version in labels; the updated object, or None if they were right."""
        labels: dict[str, str | None] = {keys.VERSION_APPLIED: choice.version.version}
        if self.vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true":
            labels[keys.READY_FOR_UPGRADE] = None
        if all(self.vc.object.labels.get(name) == value for name, value in labels.items()):
            return None
        return await self._patch({"labels": labels})

    async def _keys(self, desired: DesiredControlPlane, endpoint: Endpoint) -> Pki:
        found = await secrets.read(self.client, desired.root)
        # Generating keys takes 0.1 s of CPU, which would block the event loop.
        made = await asyncio.to_thread(pki.complete, identity(desired, endpoint), found, self.clock.wall())
        written = await secrets.keep(self.client, pki.secrets(made, desired.root), found)
        if written:
            log.info("secrets written", extra={"namespace": desired.root, "secrets": ",".join(written)})
        return made

    async def _live_version(self) -> api.ClusterVersion | None:
        try:
            found = await self.client.get(api.CLUSTER_VERSIONS, self.vc.spec.cluster_version_name)
        except errors.NotFound:
            return None
        return api.cluster_version(found)

    async def _patch(self, metadata: Mapping[str, object]) -> Object:
        # The uid guards against an object that was recreated, the resourceVersion against lost updates of lists.
        named = {"uid": self.vc.uid, "resourceVersion": self.vc.object.version, **metadata}
        return await self.client.patch(VIRTUAL_CLUSTERS, self.vc.name, {"metadata": named}, namespace=self.vc.namespace)


def identity(desired: DesiredControlPlane, endpoint: Endpoint) -> Identity:
    """The subject names and the lifetime of a control plane's certificates."""
    external = desired.vc.object.labels.get(keys.EXTERNAL_DOMAIN, "")
    return Identity(
        root=desired.root,
        cluster=desired.vc.name,
        domain=desired.vc.domain,
        server=endpoint.server,
        inner_server=endpoint.inner_server,
        server_name=endpoint.server_name,
        names=(*endpoint.names, str(desired.services[1]), *((external,) if external else ())),
        etcd_names=endpoint.etcd_names,
        lifetime=timedelta(days=desired.vc.expire_days),
    )
