"""One meta cluster for all tests of tenants, with the definitions in it."""

import secrets

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.tenancy import cluster_versions, installing


@pytest.fixture(scope="session")
async def meta(client):
    """A client of the meta cluster, which is the cluster that all tests share."""
    await installing.install(client, cluster_versions.samples())
    return client


@pytest.fixture
async def home(meta):
    """A fresh namespace for VirtualClusters."""
    name = f"home-{secrets.token_hex(2)}"
    await meta.create(
        resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    )
    yield name
    await meta.delete(resources.NAMESPACES, name)
