"""A super cluster with kwok nodes, which is the meta cluster, too, and a cluster that a tenant brings."""

import pytest

from hansa.local import ClusterSpec, NodeShape
from tenant_league import clusters_up

FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    shape = NodeShape(cpu="100", memory="100Gi")
    wishes = [
        ClusterSpec("harbour", nodes=2, shape=shape, audit=True, lift_limits=True, flags=FLUSH),
        ClusterSpec("guest", scheduler=False, lift_limits=True),
    ]
    async with clusters_up(fleet, kubectl, wishes) as made:
        yield made


@pytest.fixture
def harbour(clusters):
    return clusters["harbour"]


@pytest.fixture
def guest(clusters):
    return clusters["guest"]
