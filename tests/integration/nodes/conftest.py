"""An upper cluster and a lower one, and virtual nodes of the one over the other."""

import contextlib
import itertools

import pytest

from hansa.kube import errors, resources
from hansa.local import ClusterSpec, NodeShape
from hansa.nodes import settings, virtual_node
from hansa.nodes.settings import NodeSettings
from virtual_nodes import gone

numbers = itertools.count()


@pytest.fixture(scope="package")
async def clusters(fleet):
    """An upper cluster whose API server notes all requests, and a lower one with two nodes."""
    upper = ClusterSpec("vn-upper", audit=True, lift_limits=True)
    lower = ClusterSpec("vn-lower", nodes=2, shape=NodeShape(labels={"topology.kubernetes.io/region": "north"}))
    yield await fleet.up([upper, lower])
    await fleet.down([upper.name, lower.name])


@pytest.fixture(scope="package")
async def upper(clusters):
    async with clusters[0].client("test") as client:
        yield client


@pytest.fixture(scope="package")
async def lower(clusters):
    async with clusters[1].client("test") as client:
        yield client


@pytest.fixture
async def vn(upper):
    """The settings of a virtual node that is gone after the test."""
    one = NodeSettings(
        f"vn-{next(numbers)}",
        "vn-lower",
        taint=settings.provider_taint("k8s", {}),
        internal_ip="127.0.0.1",
        port=10250,
    )
    yield one
    with contextlib.suppress(errors.NotFound):
        await virtual_node.remove(upper, one)


@pytest.fixture
async def things(lower):
    """Makes nodes and pods in the lower cluster, which are gone after the test."""
    made = []

    async def make(thing):
        resource = resources.NODES if thing.kind == "Node" else resources.PODS
        created = await lower.create(resource, thing)
        made.append((resource, created))
        return created

    yield make
    for resource, one in reversed(made):
        with contextlib.suppress(errors.NotFound):
            grace = 0 if resource is resources.PODS else None
            await lower.delete(resource, one.name, namespace=one.namespace, grace=grace)
    for resource, one in made:
        await gone(lower, resource, one)
