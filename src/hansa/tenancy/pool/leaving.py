"""Removes a super cluster from its pool: cordons it, waits until it is drained, and deletes its objects.

`hansa leave` uses it. Moving namespaces and pods is left to vc-scheduler and vc-syncer.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.runtime.errors import HansaError
from hansa.tenancy.pool import cluster_id, join_manifests, joining
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.service_ranges import OURS, SERVICE_CIDRS

SHOWN: Final = 5  # names in an error message


class NotEmpty(HansaError):
    """Namespaces of tenants are left in the super cluster."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """A super cluster that leaves its pool; `report` gets a line for each step."""

    cluster: Object  # the object of kind Cluster
    clusters: Resource
    meta: Client
    report: Callable[[str], None]

    async def cordon(self) -> None:
        """Annotate the Cluster, so that vc-scheduler places nothing new there and moves its slices elsewhere."""
        patch = {"metadata": {"uid": self.cluster.uid, "annotations": {keys.LEAVING: "true"}}}
        await self.meta.patch(self.clusters, self.cluster.name, patch, namespace=self.cluster.namespace)
        self.report(f"{self.cluster.name} cordoned")

    async def drain(self, below: Client, *, deadline: float) -> None:
        """Wait until the super cluster has no namespaces of tenants of this meta cluster."""
        meta_id = (await self.meta.get(resources.NAMESPACES, "kube-system")).uid
        left: set[str] = set()
        try:
            async with asyncio.timeout(deadline):
                await self._watch(below, meta_id, left)
        except TimeoutError:
            names = ", ".join(sorted(left)[:SHOWN]) + (" …" if len(left) > SHOWN else "")
            raise NotEmpty(
                f"{self.cluster.name} still has {len(left)} namespaces of tenants after {deadline:.0f} s ({names});"
                " check the capacity of the other super clusters and run the same command again; --force removes it"
                " as it is"
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
                        self.report(f"namespace {obj.name} deleted, {len(left)} left")
                    case watching.Synced():
                        is_known = True
                        self.report(f"{self.cluster.name} has {len(left)} namespaces of tenants")
                if is_known and not left:
                    return

    async def free_ranges(self, below: Client) -> None:
        """Delete the ServiceCIDRs of tenants there; call it after `remove`, else vc-syncer recreates them."""
        meta_id = (await self.meta.get(resources.NAMESPACES, "kube-system")).uid
        page = await below.list(SERVICE_CIDRS, labels=OURS)
        for one in page.items:
            owner = owners.of(one)
            if owner is not None and owner.meta == meta_id:
                with contextlib.suppress(errors.NotFound):
                    await below.delete(SERVICE_CIDRS, one.name, uid=one.uid)

    async def remove(self) -> None:
        """Delete the objects of the super cluster in the meta cluster."""
        id_, namespace = self.cluster.name, self.cluster.namespace
        objects = (
            (resources.DEPLOYMENTS, join_manifests.syncer_name(id_), join_manifests.SYNCER_NAMESPACE),
            (resources.SECRETS, join_manifests.syncer_secret(id_), join_manifests.SYNCER_NAMESPACE),
            (self.clusters, id_, namespace),
            (resources.SECRETS, id_, namespace),
        )
        for resource, name, where in objects:
            with contextlib.suppress(errors.NotFound):
                await self.meta.delete(resource, name, namespace=where)
        for report in (await self.meta.list(resources.LEASES, labels=f"{keys.REACHES}={id_}")).items:
            with contextlib.suppress(errors.NotFound):
                await self.meta.delete(resources.LEASES, report.name, namespace=report.namespace, uid=report.uid)
        self.report(f"{id_} has left the pool")


async def restore(meta: Client, clusters: Resource, key: NamespacedName) -> Object | None:
    """Create the Cluster of a super cluster again that was deleted without `hansa leave`; None without its Secret.

    vc-scheduler drains a member by its Cluster. It is cordoned from the start, so that it gets no new slices.
    """
    try:
        secret = await meta.get(resources.SECRETS, key.name, namespace=key.namespace)
    except errors.NotFound:
        return None
    if join_manifests.SECRET_KEY not in (secret.get("data") or {}):
        return None
    metadata = {"namespace": key.namespace, "name": key.name, "annotations": {keys.LEAVING: "true"}}
    kind = {"apiVersion": clusters.api_version, "kind": clusters.kind}
    status = {"status": {"phase": join_manifests.PROVISIONED}}
    made = await meta.create(clusters, Object.of({**kind, "metadata": metadata, "spec": {}, **status}))
    with contextlib.suppress(errors.NotFound):  # without a status subresource, the phase was created above
        return await meta.patch(clusters, key.name, status, namespace=key.namespace, subresource="status")
    return made


async def remove_account(below: Client) -> None:
    """Delete the id, our service account and the agent in a super cluster, with an administrator's rights."""
    kept = {"Namespace"}  # it may hold other objects
    # The agent is deleted first: otherwise it would delete pods once the fence is not renewed any more.
    for obj in (*reversed(join_manifests.agent()), cluster_id.config_map(""), *reversed(join_manifests.account())):
        if obj.kind not in kept:
            with contextlib.suppress(errors.NotFound):
                await below.delete(joining.kind_of(obj), obj.name, namespace=obj.namespace)
