"""Joins a cluster to a pool: creates our service account and its id there, and its objects in the meta cluster.

`hansa join` uses it. The objects are made by `join_manifests`.
"""

import asyncio
import base64
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.login import Login
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime.errors import HansaError
from hansa.tenancy.pool import cluster_id, join_manifests
from hansa.tenancy.pool.join_manifests import Joined

MANAGER: Final = "hansa-join"
TOKEN_SECONDS: Final = 30.0  # for kube-controller-manager to fill in a token
POLL_SECONDS: Final = 0.1


class Taken(HansaError):
    """The id belongs to another cluster, or the cluster has another id."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A cluster that joins a pool; the client has an administrator's rights in it."""

    id: str
    below: Client
    login: Login

    async def prepare(self, clusters: Resource, meta: Client | None, *, namespace: str, image: str) -> Joined:
        """Create our service account in the cluster, unless the id is taken; return the data of the other objects."""
        found = await cluster_id.find(self.below)
        if found not in ("", self.id):
            raise Taken(f'the cluster has the id {found} already: join it as {found}, or run "hansa leave {found}"')
        uid = (await self.below.get(resources.NAMESPACES, "kube-system")).uid
        if meta is not None:
            await _check_free(meta, clusters, NamespacedName(namespace, self.id), uid)
        await apply(self.below, join_manifests.account())
        config = join_manifests.kubeconfig(self.id, self.login, await self._token())
        return Joined(self.id, namespace, uid, config, image, clusters)

    async def apply(self, joined: Joined, meta: Client, *, has_syncer: bool, has_agent: bool = False) -> None:
        """Create the objects in both clusters."""
        for name, made in joined.files(has_syncer=has_syncer, has_agent=has_agent).items():
            await apply(self.below if name in join_manifests.SUPER_FILES else meta, made)
        not_leaving = {"metadata": {"annotations": {keys.LEAVING: None}}}
        await meta.patch(joined.clusters, self.id, not_leaving, namespace=joined.namespace)
        phase = {"status": {"phase": join_manifests.PROVISIONED}}
        with contextlib.suppress(errors.NotFound):  # without a status subresource, the phase was applied above
            await meta.patch(joined.clusters, self.id, phase, namespace=joined.namespace, subresource="status")

    async def _token(self) -> str:
        key = join_manifests.TOKEN
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                while True:
                    secret = await self.below.get(resources.SECRETS, key.name, namespace=key.namespace)
                    if token := (secret.get("data") or {}).get("token"):
                        return base64.b64decode(token).decode()
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise HansaError(
                f"Secret {key} of the super cluster has no token after {TOKEN_SECONDS:.0f} s;"
                " check that its kube-controller-manager is running"
            ) from None


async def _check_free(meta: Client, clusters: Resource, wanted: NamespacedName, uid: str) -> None:
    """Refuse an id that another cluster of this meta cluster has, and a second Cluster for the same cluster."""
    async for page in meta.pages(clusters):
        for one in page.items:
            is_same = one.annotations.get(keys.SUPER_UID) == uid
            if one.name == wanted.name and not is_same:
                raise Taken(
                    f"Cluster {one.key} of the meta cluster has the id {one.name} already: choose another one with --id"
                )
            if is_same and one.key != wanted:
                raise Taken(
                    f"the cluster has joined as {one.key} already: use this --id and --namespace,"
                    f' or run "hansa leave {one.name}" first'
                )


async def apply(client: Client, objects: Iterable[Object]) -> None:
    """Apply objects of any of our kinds."""
    for obj in objects:
        await client.apply(kind_of(obj), obj, field_manager=MANAGER, force=True)


def kind_of(obj: Object) -> Resource:
    """The resource of one of our objects."""
    known = _KINDS.get(obj.kind)
    if known is None:
        group, _, version = obj.api_version.rpartition("/")
        return Resource(group, version, f"{obj.kind.lower()}s", kind=obj.kind)
    return known


_KINDS: Final[Mapping[str, Resource]] = {
    one.kind: one
    for one in (
        *(resources.NAMESPACES, resources.SERVICE_ACCOUNTS, resources.SECRETS, resources.CONFIG_MAPS),
        *(resources.CLUSTER_ROLES, resources.CLUSTER_ROLE_BINDINGS, resources.ROLES, resources.ROLE_BINDINGS),
        *(resources.DEPLOYMENTS, resources.LEASES, resources.NETWORK_POLICIES),
    )
}
