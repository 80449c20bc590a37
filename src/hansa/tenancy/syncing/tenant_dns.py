"""Gives each tenant a DNS: CoreDNS in its control plane, before its first pod is synced.

Only missing objects are created, so a tenant may change all of them. It may have a Service kube-system/kube-dns of its
own, or take ours over by removing its label. In a pool, each super cluster where it has pods gets a CoreDNS, because
that of another one may not be reachable.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.tenancy import api
from hansa.tenancy.syncing import annotations, dns_objects
from hansa.tenancy.syncing.dns_objects import DnsSettings, Placed
from hansa.tenancy.syncing.members import Tenancy

log = logging.getLogger(__name__)
_RESOURCES = {
    one.kind: one
    for one in (
        resources.SERVICE_ACCOUNTS,
        Resource("rbac.authorization.k8s.io", "v1", "clusterroles", kind="ClusterRole", namespaced=False),
        Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", kind="ClusterRoleBinding", namespaced=False),
        resources.CONFIG_MAPS,
        resources.DEPLOYMENTS,
        resources.SERVICES,
    )
}


@dataclass(frozen=True, slots=True)
class TenantDns:
    """Creates the DNS of tenants. `served` are the super clusters of a pool that this program serves."""

    settings: DnsSettings
    served: Callable[[], Iterable[str]]
    is_pooled: bool = False

    async def ensure(self, tenancy: Tenancy, client: Client) -> None:
        """Create what a tenant lacks. A tenant that refuses it is synced nevertheless."""
        vc = api.virtual_cluster(tenancy.vc)
        if not self._is_wanted(vc):
            return
        try:
            await self._create_missing(vc, client)
        except (errors.Denied, errors.Invalid, errors.Conflict, errors.NotFound) as error:
            log.warning("DNS of tenant not created", extra={"tenant": tenancy.owner.key, "error": str(error)})

    def _is_wanted(self, vc: api.VirtualCluster) -> bool:
        asked = annotations.of(vc.object).dns
        return (self.settings.is_enabled and vc.provisioner != api.EXISTING) if asked is None else asked

    async def _create_missing(self, vc: api.VirtualCluster, client: Client) -> None:
        service = await _service(client)
        if service is not None and keys.TENANT_DNS not in service.labels:
            return
        known = {one.name: one for one in await _deployments(client)}
        missing = [one for one in self._placed(vc) if one.name not in known]
        if service is None or missing:
            for obj in dns_objects.objects(self.settings, missing, domain=vc.domain, services=vc.service_cidr):
                if service is None or obj.kind != resources.SERVICES.kind:
                    await _create(client, obj)
        if self.is_pooled:
            await self._delete_unused(client, known.values(), vc)

    def _placed(self, vc: api.VirtualCluster) -> list[Placed]:
        """The Deployments that should be there; of other super clusters of a pool other syncers may take care."""
        if not self.is_pooled:
            return [Placed()]
        return [Placed(one) for one in sorted(_super_clusters(vc) & set(self.served()))]

    async def _delete_unused(self, client: Client, found: Iterable[Object], vc: api.VirtualCluster) -> None:
        """Delete the CoreDNS of super clusters that this program serves and the tenant left."""
        left = set(self.served()) - _super_clusters(vc)
        for one in found:
            if one.labels.get(keys.TENANT_DNS) in left:
                await client.delete(resources.DEPLOYMENTS, one.name, namespace=one.namespace, uid=one.uid)


def _super_clusters(vc: api.VirtualCluster) -> set[str]:
    """The super clusters of a pool in which a namespace of the tenant is placed."""
    records = (vc.status.placements or {}).values()
    return {cluster for record in records for cluster, count in record.slices.items() if count}


async def _service(client: Client) -> Object | None:
    try:
        return await client.get(resources.SERVICES, dns_objects.SERVICE, namespace=dns_objects.NAMESPACE)
    except errors.NotFound:
        return None


async def _deployments(client: Client) -> list[Object]:
    found = await client.list(resources.DEPLOYMENTS, namespace=dns_objects.NAMESPACE, labels=keys.TENANT_DNS)
    return list(found.items)


async def _create(client: Client, obj: Object) -> None:
    try:
        await client.create(_RESOURCES[obj.kind], obj)
    except errors.AlreadyExists:
        return
    except errors.Invalid:
        if obj.kind != resources.SERVICES.kind:
            raise
        # Another Service has the address, or the range is not that of the VirtualCluster.
        await client.create(resources.SERVICES, dns_objects.without_address(obj))
