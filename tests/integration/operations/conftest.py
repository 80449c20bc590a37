"""A meta cluster with all definitions, and a super cluster; both are shared by the tests of the operator's commands."""

import asyncio
import contextlib

import pytest

from hansa.federation import installing as federation
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.local import ClusterSpec
from hansa.scheduling.pooling import pool_members
from hansa.tenancy import installing
from tenant_league import clusters_up


@pytest.fixture(scope="package")
async def clusters(fleet, kubectl):
    """The clusters by name."""
    wishes = [ClusterSpec("meta", scheduler=False, lift_limits=True), ClusterSpec("r1", nodes=1, lift_limits=True)]
    async with clusters_up(fleet, kubectl, wishes) as made:
        await installing.install(made["meta"].client)
        await federation.install(made["meta"].client)
        await pool_members.resource(made["meta"].client)
        yield made


@pytest.fixture
def meta(clusters):
    return clusters["meta"]


@pytest.fixture
async def make(meta):
    """Creates objects in the meta cluster, with their status, and deletes them afterwards."""
    async with contextlib.AsyncExitStack() as stack:

        async def create(resource, name, namespace="", *, status=None, **fields):
            made = await meta.make(resource, name, namespace, **fields)
            stack.push_async_callback(delete, resource, name, namespace)
            if status is not None:
                below = "" if resource.kind == "Cluster" else "status"  # our definition has no status subresource
                patch = {"status": status}
                await meta.client.patch(resource, name, patch, namespace=namespace, subresource=below)
            return Object.of(made)

        async def delete(resource, name, namespace):
            with contextlib.suppress(Exception):
                await meta.client.patch(resource, name, {"metadata": {"finalizers": None}}, namespace=namespace)
            with contextlib.suppress(Exception):
                await meta.client.delete(resource, name, namespace=namespace)

        yield create


@pytest.fixture
async def silent_server():
    """The URL of a server that accepts connections and never answers."""

    async def keep(reader, writer):
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await reader.read()
        writer.close()

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.fixture
def super_secret(make):
    """Creates the Secret of a super cluster, with this kubeconfig."""

    async def create(name, config):
        return await make(resources.SECRETS, name, "default", stringData={"admin-kubeconfig": config})

    return create


@pytest.fixture
async def account(meta, make, tmp_path):
    """Creates service accounts of the meta cluster with these rules; the path of the kubeconfig of each."""

    async def create(name, rules):
        await make(resources.SERVICE_ACCOUNTS, name, "default")
        await make(resources.CLUSTER_ROLES, f"test-{name}", rules=rules)
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"test-{name}"}
        await make(resources.CLUSTER_ROLE_BINDINGS, f"test-{name}", roleRef=role, subjects=[subject])
        path = tmp_path / f"{name}.kubeconfig"
        path.write_text(meta.with_token(await meta.kubectl("create", "token", name)))
        return path

    return create
