"""A super cluster with kwok nodes, which is the meta cluster, too, and a cluster that a tenant brings."""

import contextlib

import pytest

from hansa.local import ClusterSpec, NodeShape
from programs import Kubectl
from tenant_league import Side

FLUSH = {"kube-apiserver": ("--audit-log-batch-max-wait=200ms",)}


@pytest.fixture(scope="session")
async def clusters(fleet, kubectl):
    shape = NodeShape(cpu="100", memory="100Gi")
    wishes = [
        ClusterSpec("harbour", nodes=2, shape=shape, audit=True, lift_limits=True, flags=FLUSH),
        ClusterSpec("guest", scheduler=False, lift_limits=True),
    ]
    async with contextlib.AsyncExitStack() as stack:
        made = {}
        for one in await fleet.up(wishes):
            client = await stack.enter_async_context(one.client("hansa-test"))
            made[one.name] = Side(one, Kubectl(kubectl, one.kubeconfig), client)
        yield made


@pytest.fixture
def harbour(clusters):
    return clusters["harbour"]


@pytest.fixture
def guest(clusters):
    return clusters["guest"]
