"""Lets a super cluster leave its pool: first what is there goes elsewhere, then it is forgotten.

Where things go is the scheduler's matter, and that they go the syncer's; here they are told, waited for, and removed.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.runtime.errors import HansaError
from hansa.tenancy.pool import cluster_id, join_manifests, joining
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.service_ranges import OURS, SERVICE_CIDRS

SHOWN: Final = 5  # names in a sentence


class NotEmpty(HansaError):
    """Something is still there."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A super cluster on its way out of a pool; `tell` is given what happens."""

    cluster: Object  # its Cluster
    clusters: Resource
    meta: Client
    tell: Callable[[str], None]

    async def close(self) -> None:
        """Let nothing new come, and what is there go elsewhere."""
        said = {"metadata": {"uid": self.cluster.uid, "annotations": {keys.LEAVING: "true"}}}
        await self.meta.patch(self.clusters, self.cluster.name, said, namespace=self.cluster.namespace)
        self.tell(f"{self.cluster.name} takes nothing new")

    async def drain(self, below: Client, *, deadline: float) -> None:
        """Wait until no namespace of a tenant of this meta cluster is left there."""
        meta_id = (await self.meta.get(resources.NAMESPACES, "kube-system")).uid
        left: set[str] = set()
        try:
            async with asyncio.timeout(deadline):
                await self._watch(below, meta_id, left)
        except TimeoutError:
            names = ", ".join(sorted(left)[:SHOWN]) + (" …" if len(left) > SHOWN else "")
            raise NotEmpty(
                f"{self.cluster.name} still has {len(left)} namespaces of tenants after {deadline:.0f} s ({names}): is"
                ' there room in the other super clusters? The same command again goes on waiting; "--force" does not'
            ) from None

    async def _watch(self, below: Client, meta_id: str, left: set[str]) -> None:
        is_known = False
        changes = watching.watch(below, resources.NAMESPACES, labels=stamp.selector())
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Restarted():
                        left.clear()
                        is_known = False
                    case watching.Added(obj) | watching.Modified(obj) if obj.annotations.get(keys.META) == meta_id:
                        left.add(obj.name)
                    case watching.Deleted(obj):
                        left.discard(obj.name)
                        self.tell(f"namespace {obj.name} is gone, {len(left)} are left")
                    case watching.Synced():
                        is_known = True
                        self.tell(f"{len(left)} namespaces of tenants are in {self.cluster.name}")
                if is_known and not left:
                    return

    async def free_ranges(self, below: Client) -> None:
        """Remove the service ranges of tenants there; before it is forgotten, a syncer would make them again."""
        meta_id = (await self.meta.get(resources.NAMESPACES, "kube-system")).uid
        page = await below.list(SERVICE_CIDRS, labels=OURS)
        for one in page.items:
            owner = owners.of(one)
            if owner is not None and owner.meta == meta_id:
                with contextlib.suppress(errors.NotFound):
                    await below.delete(SERVICE_CIDRS, one.name, uid=one.uid)

    async def forget(self) -> None:
        """Remove what the meta cluster has for it."""
        id_, namespace = self.cluster.name, self.cluster.namespace
        gone = (
            (resources.DEPLOYMENTS, join_manifests.syncer_name(id_), join_manifests.SYNCER_NAMESPACE),
            (resources.SECRETS, join_manifests.syncer_secret(id_), join_manifests.SYNCER_NAMESPACE),
            (self.clusters, id_, namespace),
            (resources.SECRETS, id_, namespace),
        )
        for resource, name, where in gone:
            with contextlib.suppress(errors.NotFound):
                await self.meta.delete(resource, name, namespace=where)
        for report in (await self.meta.list(resources.LEASES, labels=f"{keys.REACHES}={id_}")).items:
            with contextlib.suppress(errors.NotFound):
                await self.meta.delete(resources.LEASES, report.name, namespace=report.namespace, uid=report.uid)
        self.tell(f"{id_} has left the pool")


async def forget_account(below: Client) -> None:
    """Remove the id, our account and the agent from a super cluster, with an administrator's rights."""
    kept = {"Namespace"}  # others may live there
    # The agent goes first: it must not find a fence that nobody renews.
    for obj in (*reversed(join_manifests.agent()), cluster_id.config_map(""), *reversed(join_manifests.account())):
        if obj.kind not in kept:
            with contextlib.suppress(errors.NotFound):
                await below.delete(joining.kind_of(obj), obj.name, namespace=obj.namespace)
