"""ServiceCIDRs of tenants in a real super cluster."""

import ipaddress

from eventually import eventually
from hansa.kube import errors
from hansa.runtime import clock
from hansa.tenancy.syncing import service_ranges
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.service_ranges import SERVICE_CIDRS, ServiceRanges
from league import fresh_name

FIRST, SECOND = (ipaddress.ip_network(text) for text in ("10.241.7.0/28", "10.241.7.16/28"))
PART = ipaddress.ip_network("10.241.7.0/29")


async def test_a_tenant_has_one_range_that_overlaps_no_other(client):
    ranges = ServiceRanges(client, clock=clock.SystemClock())
    one, other = (Owner(fresh_name(), "default", name, f"uid-{name}", "meta") for name in ("one", "other"))
    assert await ranges.ensure(one, None) == ()
    assert await ranges.ensure(one, FIRST) == (FIRST,)
    assert await ranges.ensure(one, FIRST) == (FIRST,)
    assert await ranges.ensure(other, PART) == ()
    # What an earlier version created for a ServiceCIDR of the tenant is deleted.
    claimed = service_ranges._range(f"{one.key}-claimed", SECOND, one)
    await client.create(SERVICE_CIDRS, claimed)
    assert await ranges.ensure(one, FIRST) == (FIRST,)
    await eventually(lambda: _is_gone(client, claimed.name))
    assert await ranges.ensure(one, None) == ()
    await eventually(lambda: _is_gone(client, f"{one.key}-{service_ranges.NAME}"))


async def _is_gone(client, name):
    try:
        await client.get(SERVICE_CIDRS, name)
    except errors.NotFound:
        return True
    return False
