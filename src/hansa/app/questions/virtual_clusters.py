"""VirtualClusters of a meta cluster: which one a kubeconfig belongs to, and its credentials."""

import functools

from hansa.app.questions import reading
from hansa.app.questions.reading import Reader
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.syncing import credentials
from hansa.tenancy.syncing.credentials import TenantCredentials


async def running(meta: Client) -> list[VirtualCluster]:
    """The VirtualClusters whose control planes serve."""
    return api.running(await reading.every(meta, api.VIRTUAL_CLUSTERS))


async def connect(reader: Reader, meta: Client, vc: VirtualCluster) -> Client:
    """A client of a tenant, with the credentials of its VirtualCluster."""
    secret: Object | None = None
    if name := credentials.secret_of(vc.object):
        try:
            secret = await meta.get(resources.SECRETS, name, namespace=vc.root)
        except errors.NotFound:
            raise HansaError(
                f"VirtualCluster {vc.key}: Secret {vc.root}/{name} with its kubeconfig not found"
            ) from None
    found = credentials.find(vc.object, secret)
    if found is None:
        raise HansaError(f"VirtualCluster {vc.key} has no kubeconfig")
    return await reader.client(TenantCredentials(found))


async def of_cluster(reader: Reader, meta: Client, tenant: Client, wanted: str) -> VirtualCluster:
    """The VirtualCluster of a tenant's API server, or the one that the user names."""
    vcs = await running(meta)
    if wanted:
        namespace, slash, name = wanted.partition("/")
        key = NamespacedName(namespace, name) if slash else NamespacedName("default", namespace)
        named = [vc for vc in vcs if vc.key == key]
        if not named:
            raise HansaError(f"VirtualCluster {key} does not exist in the meta cluster, or is not Running")
        return named[0]
    here = (await tenant.get(resources.NAMESPACES, "kube-system")).uid
    ids = await tasks.gather(functools.partial(_id, reader, meta), vcs, at_most=reading.CONCURRENT)
    for vc, found in zip(vcs, ids, strict=True):
        if found == here:
            return vc
    raise HansaError(
        "no running VirtualCluster of the meta cluster has this API server: name it with --vc NAMESPACE/NAME"
    )


async def _id(reader: Reader, meta: Client, vc: VirtualCluster) -> str:
    try:
        client = await connect(reader, meta, vc)
        return (await client.get(resources.NAMESPACES, "kube-system")).uid
    except HansaError:
        return ""
