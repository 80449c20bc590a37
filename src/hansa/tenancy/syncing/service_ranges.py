"""Creates a ServiceCIDR in the super cluster for each VirtualCluster, so that its Services keep their cluster IPs.

vc-syncer uses it for each route. Only `serviceCidr` of the VirtualCluster counts: a ServiceCIDR of the tenant could
claim any address. A range that overlaps another is not created: the super cluster allocates other IPs.
"""

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import AsyncIterator, Mapping

from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock
from hansa.tenancy import api
from hansa.tenancy.api import Network
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.owners import Owner

log = logging.getLogger(__name__)
SERVICE_CIDRS = Resource("networking.k8s.io", "v1", "servicecidrs", kind="ServiceCIDR", namespaced=False)
OURS = f"{keys.CONTROLLED}=true"  # label selector of ours in the super cluster
NAME = "kubernetes"  # after the tenant's key: the name of its range
READY_CHECKS, POLL_SECONDS = 50, 0.1  # until a new range is Ready
DELETION_SECONDS = 120.0  # for which a former range of the tenant is waited for; the API server takes 10 at least
UNSUPPORTED = (errors.NotFound, errors.Forbidden, errors.Invalid)  # no such API, or no right to use it


class ServiceRanges:
    """Creates ServiceCIDRs in the super cluster, one tenant after the other: two must not get the same range.

    Another replica may create one at the same time. So the ranges are listed again afterwards; of two that overlap,
    both are deleted, and each replica tries again.
    """

    def __init__(self, super_cluster: Client, *, clock: clock.Clock) -> None:
        self._super, self._clock, self._lock = super_cluster, clock, asyncio.Lock()

    async def ensure(self, owner: Owner, wanted: Network | None) -> tuple[Network, ...]:
        """Create a tenant's range, delete any other of its ranges, and return those that the super cluster serves."""
        try:
            async with self._lock:
                return await self._ensure(owner, wanted)
        except UNSUPPORTED as error:
            log.info("service range not created", extra={"tenant": owner.key, "error": str(error)})
            return ()

    async def _ensure(self, owner: Owner, wanted: Network | None) -> tuple[Network, ...]:
        existing = {one.name: one async for one in _all(self._super)}
        name = f"{owner.key}-{NAME}"
        for one in existing.values():
            if owners.of(one) == owner and not one.is_deleting and (one.name != name or _networks(one) != [wanted]):
                await self._delete(one)
        found = existing.get(name)
        if wanted is not None and found is not None and owners.of(found) == owner and self._ends_soon(found):
            raise errors.Unreachable(f"the former ServiceCIDR {name} of the super cluster is still being deleted")
        if wanted is None or (found is not None and not _is_range(found, owner, wanted)):
            return ()  # of another owner, or of a deleted tenant with the same key, whose range is purged
        if found is None:
            if other := _overlapping(wanted, existing):
                log.info(
                    "service range overlaps, not created",
                    extra={"tenant": owner.key, "range": str(wanted), "other": other},
                )
                return ()
            found = await self._super.create(SERVICE_CIDRS, _range(name, wanted, owner))
            others = {one.name: one async for one in _all(self._super) if one.name != name}
            if other := _overlapping(wanted, others):
                await self._delete(found)
                raise errors.Unreachable(f"ServiceCIDR {other} of the super cluster was created with an equal range")
        return (wanted,) if await self._is_ready(found) else ()

    async def _delete(self, one: Object) -> None:
        """Delete a range of a tenant that its VirtualCluster does not name."""
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await self._super.delete(SERVICE_CIDRS, one.name, uid=one.uid)
        log.info("service range deleted", extra={"range": one.name})

    def _ends_soon(self, found: Object) -> bool:
        """Whether a range is being deleted. Without it, Services would get other cluster IPs, and keep them."""
        since = found.metadata.deletion_timestamp
        return since is not None and (self._clock.wall() - since).total_seconds() < DELETION_SECONDS

    async def _is_ready(self, found: Object) -> bool:
        for _ in range(READY_CHECKS):
            conditions = found.status.get("conditions", ())
            if any((one["type"], one["status"]) == ("Ready", "True") for one in conditions):
                return True
            await self._clock.sleep(POLL_SECONDS)
            found = await self._super.get(SERVICE_CIDRS, found.name)
        seconds = READY_CHECKS * POLL_SECONDS
        raise errors.Unreachable(f"ServiceCIDR {found.name} of the super cluster is not Ready after {seconds:.0f} s")


def of(vc: Object) -> Network | None:
    """The service range of a VirtualCluster; of an existing cluster only that of the spec.

    The manager allocates the range in the status, which existing clusters do not use.
    """
    found = api.virtual_cluster(vc)
    if found.provisioner == api.EXISTING and not found.spec.service_cidr:
        return None
    return found.service_cidr


async def _all(client: Client) -> AsyncIterator[Object]:
    async for page in client.pages(SERVICE_CIDRS):
        for one in page.items:
            yield one


def _range(name: str, network: Network, owner: Owner) -> Object:
    metadata = {"name": name, "labels": {keys.CONTROLLED: "true"}, "annotations": owner.annotations()}
    return Object.of(
        {
            "apiVersion": SERVICE_CIDRS.api_version,
            "kind": SERVICE_CIDRS.kind,
            "metadata": metadata,
            "spec": {"cidrs": [str(network)]},
        }
    )


def _is_range(found: Object, owner: Owner, wanted: Network) -> bool:
    return not found.is_deleting and owners.of(found) == owner and _networks(found) == [wanted]


def _networks(obj: Object) -> list[Network]:
    return [ipaddress.ip_network(cidr) for cidr in obj.spec.get("cidrs", ())]


def _overlapping(network: Network, existing: Mapping[str, Object]) -> str:
    """The name of a range that shares addresses with this one."""
    return next(
        (name for name, one in existing.items() if any(_overlap(network, other) for other in _networks(one))), ""
    )


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)
