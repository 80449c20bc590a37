"""The route of a tenant to a super cluster, with the settings of its VirtualCluster's spec and annotations. Pure."""

from dataclasses import replace
from urllib.parse import urlsplit

from hansa.engine.registry import Route
from hansa.model import limits
from hansa.model.translation.tenant.tenant_settings import TenantSettings
from hansa.tenancy import api
from hansa.tenancy.api import ClusterVersionSpec
from hansa.tenancy.syncing import annotations
from hansa.tenancy.syncing.members import Tenancy
from hansa.tenancy.syncing.super_clusters import Served


def route(tenancy: Tenancy, lower: str, served: Served, *, common: TenantSettings, is_pooled: bool) -> Route:
    """The route to super cluster `lower`, with what it serves; `common` are settings of all tenants."""
    vc, owner, annotated = api.virtual_cluster(tenancy.vc), tenancy.owner, annotations.of(tenancy.vc)
    server, version = urlsplit(tenancy.server), tenancy.version
    given = ClusterVersionSpec() if version is None else version.spec  # what the VirtualCluster's own fields override
    sync_unused = [one for one in (vc.spec.sync_unused, given.sync_unused) if one is not None]
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
        allowed=common.allowed | annotated.allowed,
        lists=common.lists | annotated.lists,
        service_ranges=served.ranges,
        pod_security=annotated.pod_security or common.pod_security,
        api_host=server.hostname or "",
        api_port=str(server.port or 443),
        api_addresses=served.api.addresses,
        api_endpoints=served.api.endpoints,
        is_api_relayed=served.api.is_relayed,
        super_cluster=lower if is_pooled else "",
        weight=annotated.weight,
        limits=limits.merged(common.limits, given.limits, vc.spec.limits)[0],
        sync_unused=sync_unused[0] if sync_unused else common.sync_unused,
    )
    return Route(owner.key, lower, tenant, weight=annotated.weight)
