"""Lets a cluster join a pool as a super cluster: our account there, its id, and what the meta cluster has to know."""

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
TOKEN_SECONDS: Final = 30.0  # in which a cluster fills in a token
ASK_SECONDS: Final = 0.1


class Taken(HansaError):
    """The id is another cluster's, or the cluster has another id."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A cluster on its way into a pool, with an administrator's rights in it."""

    id: str
    below: Client
    login: Login

    async def prepare(self, clusters: Resource, meta: Client | None, *, namespace: str, image: str) -> Joined:
        """Make our account in the cluster, unless the id is taken; all that the pool has to know."""
        found = await cluster_id.find(self.below)
        if found not in ("", self.id):
            raise Taken(f'the cluster has the id {found} already: join it as {found}, or "hansa leave {found}" first')
        uid = (await self.below.get(resources.NAMESPACES, "kube-system")).uid
        if meta is not None:
            await _check_free(meta, clusters, NamespacedName(namespace, self.id), uid)
        await apply(self.below, join_manifests.account())
        config = join_manifests.kubeconfig(self.id, self.login, await self._token())
        return Joined(self.id, namespace, uid, config, image, clusters)

    async def apply(self, joined: Joined, meta: Client, *, has_syncer: bool, has_agent: bool = False) -> None:
        """Let it take part now."""
        for name, made in joined.files(has_syncer=has_syncer, has_agent=has_agent).items():
            await apply(self.below if name in join_manifests.SUPER_FILES else meta, made)
        stays = {"metadata": {"annotations": {keys.LEAVING: None}}}
        await meta.patch(joined.clusters, self.id, stays, namespace=joined.namespace)
        phase = {"status": {"phase": join_manifests.PROVISIONED}}
        with contextlib.suppress(errors.NotFound):  # a definition without a status of its own took it with the object
            await meta.patch(joined.clusters, self.id, phase, namespace=joined.namespace, subresource="status")

    async def _token(self) -> str:
        place = join_manifests.TOKEN
        try:
            async with asyncio.timeout(TOKEN_SECONDS):
                while True:
                    secret = await self.below.get(resources.SECRETS, place.name, namespace=place.namespace)
                    if token := (secret.get("data") or {}).get("token"):
                        return base64.b64decode(token).decode()
                    await asyncio.sleep(ASK_SECONDS)
        except TimeoutError:
            raise HansaError(
                f"secret {place} of the super cluster has no token after {TOKEN_SECONDS:.0f} s: "
                "does its kube-controller-manager run?"
            ) from None


async def _check_free(meta: Client, clusters: Resource, wanted: NamespacedName, uid: str) -> None:
    """Refuse an id that another cluster has in this meta cluster, and a second place for the same one."""
    async for page in meta.pages(clusters):
        for one in page.items:
            is_same = one.annotations.get(keys.SUPER_UID) == uid
            if one.name == wanted.name and not is_same:
                raise Taken(f"Cluster {one.key} of the meta cluster has the id {one.name} already: choose another id")
            if is_same and one.key != wanted:
                raise Taken(f"the cluster has joined as {one.key} already: use that name and namespace, or leave first")


async def apply(client: Client, objects: Iterable[Object]) -> None:
    """Make objects so, whatever their kind."""
    for obj in objects:
        await client.apply(kind_of(obj), obj, field_manager=MANAGER, force=True)


def kind_of(obj: Object) -> Resource:
    """The resource of an object of ours."""
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
        *(resources.DEPLOYMENTS, resources.LEASES),
    )
}
