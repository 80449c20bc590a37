"""A tenant is served by one super cluster alone, or by those of a pool."""

import asyncio

import pytest

from hansa.kube.objects import Object
from hansa.tenancy.syncing import serving


class Marker:
    """Records what is written."""

    def __init__(self):
        self.written = []

    async def set_super_cluster(self, _vc, id_):
        self.written.append(id_)


def ensured(marked, *supers, is_pooled=False):
    vc = Object.of({"metadata": {"name": "a", "namespace": "b"}, "spec": {}, "status": {"superCluster": marked}})
    marker = Marker()
    asyncio.run(serving.ensure(vc, supers, marker, is_pooled=is_pooled))
    return marker.written


def test_the_first_super_cluster_marks_the_tenant_and_serves_it_from_then_on():
    assert ensured("", "r1") == ["r1"]
    assert ensured("r1", "r1") == []


def test_another_super_cluster_refuses_and_says_what_to_do():
    with pytest.raises(serving.Refused, match="super cluster r1 .* serves the tenant without a pool") as caught:
        ensured("r1", "r2")
    assert "stop this vc-syncer, or add both to a pool" in str(caught.value)
    assert "kubectl patch virtualcluster a -n b --subresource=status" in str(caught.value)


def test_a_pool_takes_over_the_tenant_of_a_member_and_of_no_other():
    assert ensured("", "r1", "r2", is_pooled=True) == []
    assert ensured("r1", "r1", "r2", is_pooled=True) == [""]
    with pytest.raises(serving.Refused, match='add it with "hansa join"'):
        ensured("r9", "r1", "r2", is_pooled=True)
