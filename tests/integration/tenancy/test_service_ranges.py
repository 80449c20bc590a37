"""ServiceCIDRs of tenants in a real super cluster."""

import ipaddress

import pytest

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


async def test_a_tenant_that_comes_back_waits_for_the_end_of_its_former_range(client):
    ranges, one = ServiceRanges(client, clock=clock.SystemClock()), Owner(fresh_name(), "default", "one", "uid", "meta")
    assert await ranges.ensure(one, SECOND) == (SECOND,)
    assert await ranges.ensure(one, None) == ()
    with pytest.raises(errors.Unreachable, match="is still being deleted"):
        await ranges.ensure(one, SECOND)

    async def is_served():
        try:
            return await ranges.ensure(one, SECOND) == (SECOND,)
        except errors.Unreachable:
            return False

    await eventually(is_served)
    assert await ranges.ensure(one, None) == ()
    await eventually(lambda: _is_gone(client, f"{one.key}-{service_ranges.NAME}"))


async def _is_gone(client, name):
    try:
        await client.get(SERVICE_CIDRS, name)
    except errors.NotFound:
        return True
    return False
