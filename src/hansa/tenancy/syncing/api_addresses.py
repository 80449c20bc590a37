"""The addresses of a tenant's API server, as endpoints of the tenant's Service `kubernetes` may have them.

Read from the kubeconfig and from the super cluster: an administrator of the tenant may write any into the endpoints.
"""

import asyncio
import contextlib
import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.tenant.tenant_settings import ApiEndpoint
from hansa.model.translation.tenant.user_endpoints import SERVICE_NAME

RESOLVE_SECONDS = 2.0  # for names in kubeconfigs

HTTPS = 443


@dataclass(frozen=True, slots=True)
class ApiServer:
    """The API server of a tenant as pods of a super cluster see it.

    `addresses` are those that it may give as its own. Pods reach it at the `endpoints` if it gives none, and, if it is
    relayed, in any case. It is `inside` if its pods are in the super cluster.
    """

    addresses: frozenset[str]
    endpoints: tuple[ApiEndpoint, ...] = ()
    is_inside: bool = False
    is_relayed: bool = False


async def of(server: str, root: str, super_cluster: Client) -> ApiServer:
    """The API server with this URL: its pods, if it leads to a Service of the namespace `root` there, or its host."""
    url = urlsplit(server)
    hosts, names = await _resolved(url.hostname or ""), list[str]()
    endpoints = {ApiEndpoint(one, url.port or HTTPS) for one in hosts if not ipaddress.ip_address(one).is_loopback}
    with contextlib.suppress(errors.Denied, errors.NotFound):
        found = (await super_cluster.list(resources.SERVICES, namespace=root)).items
        names = [one.name for one in found if leads_to(one, hosts | {url.hostname or ""}, url.port)]
    if names:
        endpoints = set().union(*[await _endpoints(name, root, super_cluster) for name in names])
    addresses = hosts | {one.address for one in endpoints}
    return ApiServer(addresses, tuple(sorted(endpoints)), is_inside=bool(names))


async def watch(cluster: Cluster, changed: Callable[[str], None]) -> None:
    """Call `changed` with the root namespace when the pods of a control plane change, until cancelled."""
    async with cluster.informers.share(Scope(resources.ENDPOINT_SLICES, labels=keys.TENANT_CLUSTER)) as slices:
        end = slices.listen(changed, lambda one: (one.namespace,))
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            end()


def leads_to(service: Object, hosts: frozenset[str], port: int | None) -> bool:
    """Whether a URL with one of these hosts leads to the Service, by its addresses or by a port of a node."""
    node_ports = {one.get("nodePort") for one in service.spec.get("ports") or ()}
    is_node_port = port is not None and port in node_ports
    return is_node_port or not hosts.isdisjoint(_addresses(service))


def _addresses(service: Object) -> Iterator[str]:
    yield from service.spec.get("clusterIPs") or ()
    for one in (service.status.get("loadBalancer") or {}).get("ingress") or ():
        yield from (one[name] for name in ("ip", "hostname") if one.get(name))


async def _endpoints(service: str, root: str, super_cluster: Client) -> set[ApiEndpoint]:
    """The endpoints of a Service at its first port."""
    selector = f"{SERVICE_NAME}={service}"
    slices = (await super_cluster.list(resources.ENDPOINT_SLICES, namespace=root, labels=selector)).items
    return {
        ApiEndpoint(address, port["port"])
        for one in slices
        for port in (one.get("ports") or ())[:1]
        for endpoint in one.get("endpoints") or ()
        for address in endpoint.get("addresses") or ()
    }


async def _resolved(host: str) -> frozenset[str]:
    with contextlib.suppress(ValueError):
        return frozenset({str(ipaddress.ip_address(host))})
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
            return frozenset(str(address[0]) for *_, address in found)
    return frozenset()
