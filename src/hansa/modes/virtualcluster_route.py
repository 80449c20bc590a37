"""The way of a tenant's objects to a super cluster, as the tenant's VirtualCluster says. Pure."""

from dataclasses import replace
from urllib.parse import urlsplit

from hansa.engine.registry import Route
from hansa.model.translation.tenant.settings import Tenant
from hansa.tenancy import api, wishes
from hansa.tenancy.members import Tenancy


def route(tenancy: Tenancy, lower: str, *, ranges: tuple[str, ...], common: Tenant, is_pooled: bool) -> Route:
    """The route to a super cluster that keeps these service ranges; `common` is what is the same for all tenants."""
    vc, owner, wished = api.virtual_cluster(tenancy.vc), tenancy.owner, wishes.of(tenancy.vc)
    server = urlsplit(tenancy.server)
    tenant = replace(
        common,
        key=owner.key,
        name=owner.name,
        namespace=owner.namespace,
        uid=owner.uid,
        meta=owner.meta,
        cluster_domain=vc.domain,
        opaque_prefixes=vc.spec.opaque_meta_prefixes,
        transparent_prefixes=vc.spec.transparent_meta_prefixes,
        allowed=common.allowed | wished.allowed,
        keeps_service_ips=bool(ranges),
        api_host=server.hostname or "",
        api_port=str(server.port or 443),
        super_cluster=lower if is_pooled else "",
        weight=wished.weight,
    )
    return Route(owner.key, lower, tenant, weight=wished.weight)
