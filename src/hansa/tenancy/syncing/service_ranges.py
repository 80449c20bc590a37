"""The service ranges of tenants in the super cluster: there a Service of a tenant has the address that it has above.

A ServiceCIDR for each of the tenant's, unless it overlaps with another: then addresses are the super cluster's own.
"""

import asyncio
import ipaddress
import itertools
import logging
from collections.abc import AsyncIterator, Iterable, Iterator

from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.owners import Owner

log = logging.getLogger(__name__)
SERVICE_CIDRS = Resource("networking.k8s.io", "v1", "servicecidrs", kind="ServiceCIDR", namespaced=False)
OURS = f"{keys.CONTROLLED}=true"  # label selector of those that we made
LOOKS, PAUSE = 50, 0.1  # how often we look whether a new range is in use, and the seconds between
UNABLE = (errors.NotFound, errors.Forbidden, errors.Invalid)  # answers of servers that keep no ranges, or not for us
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ServiceRanges:
    """Keeps ServiceCIDRs in the super cluster, one tenant after the other: two must not be given the same range."""

    def __init__(self, super_cluster: Client, *, clock: clock.Clock) -> None:
        self._super, self._clock, self._turn = super_cluster, clock, asyncio.Lock()

    async def keep(self, owner: Owner, wanted: Iterable[Object]) -> tuple[str, ...]:
        """Those of a tenant's ranges whose addresses are good in the super cluster as well."""
        try:
            async with self._turn:
                return await self._keep(owner, wanted)
        except UNABLE as error:
            log.info("services get other addresses below", extra={"tenant": owner.key, "why": str(error)})
            return ()

    async def _keep(self, owner: Owner, wanted: Iterable[Object]) -> tuple[str, ...]:
        there = {one.name: one async for one in _all(self._super)}
        kept: list[str] = []
        for one in wanted:
            name = f"{owner.key}-{one.name}"
            found = there.get(name)
            if found is not None and (found.is_leaving or owners.of(found) != owner or _cidrs(found) != _cidrs(one)):
                continue  # somebody else's, or of a former life, which is purged
            if found is None:
                if other := next((o for n, o in there.items() if _overlap(one, o)), None):
                    log.info("a service range is taken", extra={"tenant": owner.key, "by": other.name})
                    continue
                found = there[name] = await self._super.create(SERVICE_CIDRS, _range(name, one, owner))
            if await self._is_ready(found):
                kept += _cidrs(found)
        return tuple(kept)

    async def _is_ready(self, found: Object) -> bool:
        for _ in range(LOOKS):
            conditions = found.status.get("conditions", ())
            if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
                return True
            await self._clock.sleep(PAUSE)
            found = await self._super.get(SERVICE_CIDRS, found.name)
        raise errors.Unreachable(f"ServiceCIDR {found.name} of the super cluster does not become ready")


async def of(tenant: Client) -> list[Object]:
    """The service ranges of a tenant; none if its API server has or shows none."""
    try:
        return [one async for one in _all(tenant) if not one.is_leaving]
    except UNABLE as error:
        log.info("a tenant's service ranges are not known", extra={"client": repr(tenant), "why": str(error)})
        return []


async def _all(client: Client) -> AsyncIterator[Object]:
    async for page in client.pages(SERVICE_CIDRS):
        for one in page.items:
            yield one


def _range(name: str, tenants: Object, owner: Owner) -> Object:
    metadata = {
        "name": name,
        "labels": {keys.CONTROLLED: "true"},
        "annotations": owner.annotations(),
    }
    return Object.of(
        {
            "apiVersion": SERVICE_CIDRS.api_version,
            "kind": SERVICE_CIDRS.kind,
            "metadata": metadata,
            "spec": {"cidrs": _cidrs(tenants)},
        }
    )


def _cidrs(obj: Object) -> list[str]:
    return list(obj.spec.get("cidrs", ()))


def _networks(obj: Object) -> Iterator[Network]:
    yield from (ipaddress.ip_network(cidr) for cidr in _cidrs(obj))


def _overlap(one: Object, other: Object) -> bool:
    return any(a.version == b.version and a.overlaps(b) for a, b in itertools.product(_networks(one), _networks(other)))
