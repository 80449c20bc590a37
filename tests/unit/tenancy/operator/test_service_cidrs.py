"""Ranges of service addresses: no two tenants share one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.tenancy.api import BadVirtualCluster, network
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool

POOL = ServiceCidrPool(network("10.224.0.0/16"), 20)


def test_the_first_free_part_is_given():
    assert POOL.free([]) == network("10.224.0.0/20")
    assert POOL.free([network("10.224.0.0/20")]) == network("10.224.16.0/20")


def test_ranges_that_people_chose_are_avoided_wherever_they_lie():
    assert POOL.free([network("10.224.5.0/24"), network("10.96.0.0/12")]) == network("10.224.16.0/20")
    assert POOL.free([network("fd00::/112")]) == network("10.224.0.0/20")


@given(st.integers(0, 15))
def test_as_many_tenants_as_there_are_parts_get_one_each(count):
    used = []
    for _ in range(count):
        part = POOL.free(used)
        assert not any(part.overlaps(other) for other in used)
        used.append(part)


def test_an_exhausted_pool_is_reported_with_the_flag_that_enlarges_it():
    with pytest.raises(BadVirtualCluster, match="--service-range"):
        POOL.free([POOL.range])


@pytest.mark.parametrize("prefix", [15, 29, 33])
def test_a_pool_that_cannot_be_divided_is_refused(prefix):
    with pytest.raises(BadVirtualCluster, match="cannot be divided"):
        ServiceCidrPool(network("10.224.0.0/16"), prefix)
