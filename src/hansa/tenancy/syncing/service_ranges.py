"""Copies the ServiceCIDRs of tenants to the super cluster, so that Services keep their cluster IPs existing.

vc-syncer uses it for each route. A range that overlaps another is not copied: the super cluster allocates other IPs.
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
OURS = f"{keys.CONTROLLED}=true"  # label selector of copies
READY_CHECKS, POLL_SECONDS = 50, 0.1  # until a new range is Ready
UNSUPPORTED = (errors.NotFound, errors.Forbidden, errors.Invalid)  # no such API, or no right to use it
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class ServiceRanges:
    """Creates ServiceCIDRs in the super cluster, one tenant after the other: two must not get the same range."""

    def __init__(self, super_cluster: Client, *, clock: clock.Clock) -> None:
        self._super, self._clock, self._lock = super_cluster, clock, asyncio.Lock()

    async def ensure(self, owner: Owner, wanted: Iterable[Object]) -> tuple[str, ...]:
        """Copy the ranges of a tenant, and return the CIDRs whose addresses can be used in the super cluster, too."""
        try:
            async with self._lock:
                return await self._ensure(owner, wanted)
        except UNSUPPORTED as error:
            log.info("service ranges not copied", extra={"tenant": owner.key, "error": str(error)})
            return ()

    async def _ensure(self, owner: Owner, wanted: Iterable[Object]) -> tuple[str, ...]:
        existing = {one.name: one async for one in _all(self._super)}
        kept: list[str] = []
        for one in wanted:
            name = f"{owner.key}-{one.name}"
            found = existing.get(name)
            if found is not None and (found.is_deleting or owners.of(found) != owner or _cidrs(found) != _cidrs(one)):
                continue  # of another owner, or of a deleted tenant with the same key, whose copy is purged
            if found is None:
                if other := next((o for n, o in existing.items() if _overlap(one, o)), None):
                    log.info(
                        "service range overlaps, not copied",
                        extra={"tenant": owner.key, "range": ",".join(_cidrs(one)), "other": other.name},
                    )
                    continue
                found = existing[name] = await self._super.create(SERVICE_CIDRS, _range(name, one, owner))
            if await self._is_ready(found):
                kept += _cidrs(found)
        return tuple(kept)

    async def _is_ready(self, found: Object) -> bool:
        for _ in range(READY_CHECKS):
            conditions = found.status.get("conditions", ())
            if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
                return True
            await self._clock.sleep(POLL_SECONDS)
            found = await self._super.get(SERVICE_CIDRS, found.name)
        seconds = READY_CHECKS * POLL_SECONDS
        raise errors.Unreachable(f"ServiceCIDR {found.name} of the super cluster is not Ready after {seconds:.0f} s")


async def of(tenant: Client) -> list[Object]:
    """The ServiceCIDRs of a tenant; none if its API server does not support or allow the request."""
    try:
        return [one async for one in _all(tenant) if not one.is_deleting]
    except UNSUPPORTED as error:
        log.info("tenant service ranges not read", extra={"error": str(error)})
        return []


async def _all(client: Client) -> AsyncIterator[Object]:
    async for page in client.pages(SERVICE_CIDRS):
        for one in page.items:
            yield one


def _range(name: str, original: Object, owner: Owner) -> Object:
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
            "spec": {"cidrs": _cidrs(original)},
        }
    )


def _cidrs(obj: Object) -> list[str]:
    return list(obj.spec.get("cidrs", ()))


def _networks(obj: Object) -> Iterator[Network]:
    yield from (ipaddress.ip_network(cidr) for cidr in _cidrs(obj))


def _overlap(one: Object, other: Object) -> bool:
    return any(a.version == b.version and a.overlaps(b) for a, b in itertools.product(_networks(one), _networks(other)))
