"""The addresses of a tenant's API server, as endpoints of the tenant's Service `kubernetes` may have them.

Read from the kubeconfig and from the super cluster: an administrator of the tenant may write any into the endpoints.
"""

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object

RESOLVE_SECONDS = 2.0  # for names in kubeconfigs
_SERVICE_NAME = "kubernetes.io/service-name"


async def of(server: str, root: str, super_cluster: Client) -> frozenset[str]:
    """The addresses of a URL's host; if it is a Service in the root namespace `root`, those of its pods as well."""
    hosts = await _resolved(urlsplit(server).hostname or "")
    with contextlib.suppress(errors.Denied, errors.NotFound):
        found = (await super_cluster.list(resources.SERVICES, namespace=root)).items
        names = [one.name for one in found if not hosts.isdisjoint(_addresses(one))]
        for name in names:
            hosts |= await _endpoints(name, root, super_cluster)
    return hosts


def _addresses(service: Object) -> Iterator[str]:
    yield from service.spec.get("clusterIPs") or ()
    for one in (service.status.get("loadBalancer") or {}).get("ingress") or ():
        yield one.get("ip", "")


async def _endpoints(service: str, root: str, super_cluster: Client) -> frozenset[str]:
    selector = f"{_SERVICE_NAME}={service}"
    slices = (await super_cluster.list(resources.ENDPOINT_SLICES, namespace=root, labels=selector)).items
    endpoints = (endpoint for one in slices for endpoint in one.get("endpoints") or ())
    return frozenset(address for endpoint in endpoints for address in endpoint.get("addresses") or ())


async def _resolved(host: str) -> frozenset[str]:
    with contextlib.suppress(ValueError):
        return frozenset({str(ipaddress.ip_address(host))})
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, None)
            return frozenset(str(address[0]) for *_, address in found)
    return frozenset()
