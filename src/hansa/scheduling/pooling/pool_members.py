"""The members of the pool: Clusters (cluster.x-k8s.io) of the meta cluster with phase Provisioned.

The Secret of the same name has the kubeconfig. `PoolClusters` watches the members. A member whose Cluster was deleted
or has failed stays connected, closed: only `hansa leave` removes it, and only the clock loses it.
"""

import asyncio
import contextlib
import logging
import random as randomness
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from hansa.control import controller, queue, store, table
from hansa.control.informer import Informers, Scope
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.kube import errors, objects, resources
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling.pool_cluster import MemberSettings
from hansa.scheduling.slicing import pool

log = logging.getLogger(__name__)
GROUP: Final = "cluster.x-k8s.io"
OUR_VERSION: Final = "v1alpha4"  # the version of the CRD that is installed if there is none
SECRET_KEY: Final = "admin-kubeconfig"  # noqa: S105 - a key of the Secret
FIRST_LIST_SECONDS: Final = 10.0  # for the first list of a Secret
SERVED_SECONDS: Final = 60.0  # for a new CRD to be served


class Phase:
    """The phases of a Cluster that are read."""

    PROVISIONED = "Provisioned"
    FAILED = "Failed"


async def resource(client: Client, *, is_installed: bool = True) -> Resource:
    """The resource of Clusters, in a version that the meta cluster serves. Installs a CRD if allowed."""
    name = f"clusters.{GROUP}"
    try:
        definition = await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, name)
    except errors.NotFound:
        if not is_installed:
            raise HansaError(
                f"CustomResourceDefinition {name} not found in the meta cluster: install it, or start vc-scheduler"
                " without --no-install"
            ) from None
        text = (Path(__file__).parent / "crds" / "clusters.yaml").read_text()
        definition = await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, objects.Object.of(yaml.safe_load(text)))
    found = _served(definition)
    async with asyncio.timeout(SERVED_SECONDS):
        while not await _is_served(client, found):
            await asyncio.sleep(0.1)
    return found


async def all_of(client: Client) -> AsyncIterator[objects.Object]:
    """The Clusters of the meta cluster; none if it has no CRD of them."""
    with contextlib.suppress(errors.NotFound):
        definition = await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, f"clusters.{GROUP}")
        async for page in client.pages(_served(definition)):
            for one in page.items:
                yield one


async def find_name(client: Client, uid: str) -> str:
    """The name of the Cluster whose super cluster has this uid; empty if there is none."""
    names = [one.name async for one in all_of(client) if one.annotations.get(keys.SUPER_UID) == uid]
    return names[0] if names else ""


def settings_of(found: objects.Object, headroom: pool.Headroom) -> MemberSettings:
    """The settings of a member, from its Cluster; `headroom` is the default."""
    text = found.annotations.get(keys.HEADROOM, "")
    try:
        headroom = pool.headroom(text) if text else headroom
    except pool.HeadroomError as error:
        log.warning("invalid headroom annotation, default used", extra={"cluster": found.name, "error": str(error)})
    is_leaving = found.is_deleting or bool(_leaving(found))
    has_agent = found.annotations.get(keys.AGENT) == "true"
    closed = f"Cluster {found.key} is {Phase.FAILED}" if found.status.get("phase") == Phase.FAILED else ""
    return MemberSettings(dict(found.labels), headroom, is_leaving, has_agent, closed)


def _served(definition: objects.Object) -> Resource:
    served = [one["name"] for one in definition.spec["versions"] if one.get("served")]
    return Resource(GROUP, OUR_VERSION if OUR_VERSION in served else served[0], "clusters", kind="Cluster")


async def _is_served(client: Client, found: Resource) -> bool:
    try:
        await client.list(found, limit=1)
    except errors.NotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Member:
    key: objects.NamespacedName
    credentials: SecretCredentials
    client: Client
    settings: MemberSettings


class PoolMembers:
    """Adds members to a registry and removes them. `connect` makes a client, `join` makes a cluster from a client.

    `update_settings` is called with the settings of each member, and `leave` with the name of one that `hansa leave`
    removed. A member has the name of its Cluster.
    """

    def __init__(
        self,
        registry: ClusterRegistry,
        meta: Informers,
        clusters: Resource,
        *,
        connect: Callable[[Credentials], Client],
        join: Callable[[str, Client], Cluster],
        update_settings: Callable[[str, MemberSettings], None],
        leave: Callable[[str], None] = lambda _: None,
        headroom: pool.Headroom,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._meta, self._scope = registry, meta, Scope(clusters)
        self._connect, self._join_cluster = connect, join
        self._update_settings, self._leave_pool, self._headroom = update_settings, leave, headroom
        self._clusters: store.Store | None = None
        self._members: dict[str, _Member] = {}
        self._secrets: dict[objects.NamespacedName, tuple[store.Store, contextlib.AsyncExitStack]] = {}
        self._seen: set[objects.NamespacedName] = set()
        self._leaving: set[objects.NamespacedName] = set()  # Clusters that `hansa leave` cordoned
        self._queue: queue.Queue[objects.NamespacedName] = queue.Queue(
            "pool-members", clock=clock, random=random, metrics=metrics
        )
        self._controller = controller.Controller(
            "pool-members", self._reconcile, queue=self._queue, metrics=metrics, workers=1
        )

    @property
    def is_known(self) -> bool:
        """Whether all Clusters were reconciled once, so that the members of the pool are known."""
        known = self._clusters
        return known is not None and known.freshness.has_synced and self._seen >= set(known)

    async def run(self) -> None:
        """Reconcile Clusters until drained; then all members leave the registry."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._leave_all)
            self._clusters = await stack.enter_async_context(self._meta.share(self._scope))
            # Not read when the Cluster is reconciled: it may be deleted by then.
            stack.callback(self._clusters.listen(self._leaving.add, _leaving))
            stack.callback(self._clusters.listen(self._queue.add, table.own_key))
            await self._controller.run()

    def drain(self) -> None:
        """Finish the reconciles in progress, then let `run` return."""
        self._controller.drain()

    def cluster(self, name: str) -> objects.Object | None:
        """The Cluster of a member."""
        member = self._members.get(name)
        return None if member is None or self._clusters is None else self._clusters.get(member.key)

    async def _reconcile(self, key: objects.NamespacedName) -> controller.Outcome:
        assert self._clusters is not None  # the controller runs inside of `run`
        found = self._clusters.get(key)
        member = self._members.get(key.name)
        if found is not None and not _leaving(found):
            self._leaving.discard(key)
        if member is not None and member.key != key:
            log.warning("duplicate Cluster name", extra={"cluster": str(key), "other": str(member.key)})
        elif found is None:
            await self._removed(key)
        elif member is not None or found.status.get("phase") == Phase.PROVISIONED:
            await self._keep(found, member)
        self._seen.add(key)
        return controller.Done()

    async def _removed(self, key: objects.NamespacedName) -> None:
        """The Cluster was deleted: by `hansa leave`, or by mistake, with pods that still run there."""
        if key in self._leaving:
            self._leaving.discard(key)
            self._leave_pool(key.name)
            await self._leave(key.name, key)
        elif (member := self._members.get(key.name)) is not None:
            closed = f'Cluster {key} was deleted: create it with "hansa join", or run "hansa leave {key.name}"'
            log.warning("Cluster deleted, member kept", extra={"cluster": key.name})
            self._update_settings(key.name, replace(member.settings, closed=closed))

    async def _keep(self, found: objects.Object, member: _Member | None) -> None:
        secret, settings = await self._secret(found.key), settings_of(found, self._headroom)
        self._update_settings(found.name, settings)
        if member is not None:
            self._members[found.name] = replace(member, settings=settings)
            if secret is not None:
                member.credentials.observe(secret)
        elif secret is not None:
            credentials = SecretCredentials(secret, key=SECRET_KEY)
            client = self._connect(credentials)
            self._members[found.name] = _Member(found.key, credentials, client, settings)
            self._registry.join(self._join_cluster(found.name, client))
            log.info("cluster joined pool", extra={"cluster": found.name})

    async def _secret(self, key: objects.NamespacedName) -> objects.Object | None:
        if key not in self._secrets:
            scope = Scope(resources.SECRETS, namespace=key.namespace, fields=f"metadata.name={key.name}")
            stack = contextlib.AsyncExitStack()
            cache = await stack.enter_async_context(self._meta.share(scope))
            stack.callback(cache.listen(self._queue.add, table.own_key))
            self._secrets[key] = cache, stack
        cache, _ = self._secrets[key]
        await cache.freshness.wait_synced(FIRST_LIST_SECONDS)
        return cache.get(key)

    async def _leave(self, name: str, key: objects.NamespacedName) -> None:
        if (kept := self._secrets.pop(key, None)) is not None:
            await kept[1].aclose()
        if (member := self._members.pop(name, None)) is not None:
            await self._registry.leave(name)
            await member.client.close()
            log.info("cluster left pool", extra={"cluster": name})

    async def _leave_all(self) -> None:
        for name, member in list(self._members.items()):
            await self._leave(name, member.key)
        for _, stack in self._secrets.values():
            await stack.aclose()
        self._secrets.clear()


def _leaving(found: objects.Object) -> tuple[objects.NamespacedName, ...]:
    """The key of a Cluster that `hansa leave` cordoned."""
    return (found.key,) if found.annotations.get(keys.LEAVING) == "true" else ()
