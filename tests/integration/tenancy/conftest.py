"""One meta cluster for all tests of tenants, with the definitions in it, and a manager for each file."""

import secrets

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.programs import process
from hansa.tenancy import installing
from hansa.tenancy.api import VIRTUAL_CLUSTERS, virtual_cluster
from hansa.tenancy.operator import cluster_versions
from leftovers import owned_folder
from operator_lab import Operator


@pytest.fixture(scope="package")
async def meta(client):
    """A client of the meta cluster, which is the cluster that all tests share."""
    await installing.install(client, cluster_versions.samples())
    return client


@pytest.fixture
async def home(meta):
    """A fresh namespace for VirtualClusters."""
    name = f"home-{secrets.token_hex(4)}"
    await _make_namespace(meta, name)
    yield name
    await meta.delete(resources.NAMESPACES, name)


@pytest.fixture(scope="module")
async def town(meta):
    """A namespace for VirtualClusters that all tests of a file share."""
    name = f"town-{secrets.token_hex(4)}"
    await _make_namespace(meta, name)
    yield name
    await meta.delete(resources.NAMESPACES, name)


@pytest.fixture(scope="module")
async def manager(meta, cluster, request):
    """`hansa vc-manager` with the flags that the file names; at the end every tenant is deleted and nothing is left."""
    with owned_folder() as folder:
        operator = Operator(meta, cluster.kubeconfig, folder, getattr(request.module, "FLAGS", ()))
        await operator.start()
        yield operator
        if operator.program is None or operator.program.has_ended:
            await operator.start()
        left = [virtual_cluster(one) for one in (await meta.list(VIRTUAL_CLUSTERS)).items if one.metadata.finalizers]
        for vc in left:
            await meta.delete(VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace)
        for vc in left:
            await operator.gone(vc)
        await operator.stop()
        assert process.running(operator.state) == {}, "no process is left"
        assert not operator.state.exists(), f"no file is left: {list(operator.state.rglob('*'))}"


async def _make_namespace(meta, name):
    await meta.create(
        resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    )
