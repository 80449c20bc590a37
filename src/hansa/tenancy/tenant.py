"""One tenant's control plane, brought a step nearer to what its VirtualCluster asks for, or taken away.

Every step can be repeated: what is there is kept, and what a crash left half done is done again.
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
from hansa.tenancy import api, pki, root_namespace, secret_keeping, version_keeping
from hansa.tenancy.api import VIRTUAL_CLUSTERS, Network, VirtualCluster
from hansa.tenancy.pki import Identity, Pki
from hansa.tenancy.provisioning import Endpoint, Given, Gone, Order, Progress, Provisioner, Ready
from hansa.tenancy.version_keeping import Choice

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A VirtualCluster in the hands of the provisioner that it belongs to."""

    vc: VirtualCluster
    client: Client
    provisioner: Provisioner
    clock: clock.Clock

    @property
    def finalizer(self) -> str:
        """What keeps the VirtualCluster there until its control plane is gone."""
        return f"{keys.VC_FINALIZER}{self.provisioner.name}"

    async def hold(self) -> Object | None:
        """Make sure that it cannot vanish while something of it runs; the object, if it had to be changed."""
        vc = self.vc.object
        if self.finalizer in vc.metadata.finalizers:
            return None
        return await self._patch({"finalizers": [*vc.metadata.finalizers, self.finalizer]})

    async def choose(self) -> Choice:
        """The version to bring it to; the root namespace is there afterwards."""
        await root_namespace.ensure(self.client, self.vc)
        kept = await version_keeping.read(self.client, self.vc.root)
        choice = version_keeping.choose(self.vc, await self._live_version(), kept)
        if choice.is_new:
            await version_keeping.keep(self.client, self.vc.root, choice.version)
        return choice

    async def ensure(self, choice: Choice, services: Network) -> Ready | Progress:
        """Make, repair or upgrade the control plane, and keep its Secrets."""
        order = Order(self.vc, choice.version, self.vc.root, services)
        match await self.provisioner.locate(order):
            case Progress() as progress:
                return progress
            case Given(kubeconfig):
                wanted = pki.secret(order.root, pki.ADMIN, "Opaque", {pki.ADMIN: kubeconfig})
                await secret_keeping.keep(self.client, [wanted], await secret_keeping.read(self.client, order.root))
                return await self.provisioner.ensure(order, Pki({}, {pki.ADMIN: kubeconfig}))
            case Endpoint() as endpoint:
                return await self.provisioner.ensure(order, await self._keys(order, endpoint))

    async def remove(self) -> Gone | Progress:
        """Take everything away, and let the VirtualCluster go."""
        if self.finalizer not in self.vc.object.metadata.finalizers:
            return Gone()
        match await self.provisioner.remove(self.vc):
            case Progress() as progress:
                return progress
            case Gone() as gone:
                await root_namespace.remove(self.client, self.vc)
        with contextlib.suppress(errors.NotFound):
            await self._patch({"finalizers": [f for f in self.vc.object.metadata.finalizers if f != self.finalizer]})
        return gone

    async def tell_applied(self, choice: Choice) -> Object | None:
        """Say by labels which version is in place; the object, if it had to be changed."""
        labels: dict[str, str | None] = {keys.VERSION_APPLIED: choice.version.version}
        if self.vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true":
            labels[keys.READY_FOR_UPGRADE] = None
        if all(self.vc.object.labels.get(name) == value for name, value in labels.items()):
            return None
        return await self._patch({"labels": labels})

    async def _keys(self, order: Order, endpoint: Endpoint) -> Pki:
        found = await secret_keeping.read(self.client, order.root)
        # Making keys takes a tenth of a second, for which nobody else should wait.
        made = await asyncio.to_thread(pki.complete, identity(order, endpoint), found, self.clock.wall())
        written = await secret_keeping.keep(self.client, pki.secrets(made, order.root), found)
        if written:
            log.info("keys were written", extra={"namespace": order.root, "secrets": ",".join(written)})
        return made

    async def _live_version(self) -> api.ClusterVersion | None:
        try:
            found = await self.client.get(api.CLUSTER_VERSIONS, self.vc.spec.cluster_version_name)
        except errors.NotFound:
            return None
        return api.cluster_version(found)

    async def _patch(self, metadata: Mapping[str, object]) -> Object:
        # The uid: what is patched must be this life of the VirtualCluster. The version: lists are replaced as a whole.
        named = {"uid": self.vc.uid, "resourceVersion": self.vc.object.version, **metadata}
        return await self.client.patch(VIRTUAL_CLUSTERS, self.vc.name, {"metadata": named}, namespace=self.vc.namespace)


def identity(order: Order, endpoint: Endpoint) -> Identity:
    """Whom the certificates of a control plane are for."""
    external = order.vc.object.labels.get(keys.EXTERNAL_DOMAIN, "")
    return Identity(
        root=order.root,
        cluster=order.vc.name,
        domain=order.vc.domain,
        server=endpoint.server,
        inner_server=endpoint.inner_server,
        names=(*endpoint.names, str(order.services[1]), *((external,) if external else ())),
        etcd_names=endpoint.etcd_names,
        lifetime=timedelta(days=order.vc.expire_days),
    )
