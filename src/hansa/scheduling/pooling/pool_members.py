"""Which clusters the pool has: Clusters (cluster.x-k8s.io) of the meta cluster that are provisioned.

The Secret of the same name holds the kubeconfig. What runs there is left to others.
"""

import asyncio
import contextlib
import logging
import random as randomness
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from hansa.control import controller, queue, store, table
from hansa.control.informer import Informers, Scope
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Registry
from hansa.kube import errors, objects, resources
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling.pool_cluster import ClusterIdentity
from hansa.scheduling.slicing import pool

log = logging.getLogger(__name__)
GROUP: Final = "cluster.x-k8s.io"
OURS: Final = "v1alpha4"  # the version of the definition that we bring
SECRET_KEY: Final = "admin-kubeconfig"  # noqa: S105 - a name
FIRST_LIST: Final = 10.0  # seconds for the first look at a Secret
SERVED_SECONDS: Final = 60.0  # in which a new definition is served


class Phase:
    """The phases that matter here."""

    PROVISIONED = "Provisioned"
    FAILED = "Failed"


async def resource(client: Client, *, is_installed: bool = True) -> Resource:
    """Clusters in the version that the meta cluster serves. Without a definition, ours is made, if that is allowed."""
    name = f"clusters.{GROUP}"
    try:
        definition = await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, name)
    except errors.NotFound:
        if not is_installed:
            raise HansaError(f"the meta cluster has no {name}: install it, or let this program do it") from None
        text = (Path(__file__).parent / "crds" / "clusters.yaml").read_text()
        definition = await client.create(resources.CUSTOM_RESOURCE_DEFINITIONS, objects.Object.of(yaml.safe_load(text)))
    served = [one["name"] for one in definition.spec["versions"] if one.get("served")]
    found = Resource(GROUP, OURS if OURS in served else served[0], "clusters", kind="Cluster")
    async with asyncio.timeout(SERVED_SECONDS):
        while not await _is_served(client, found):
            await asyncio.sleep(0.1)
    return found


async def _is_served(client: Client, found: Resource) -> bool:
    try:
        await client.list(found, limit=1)
    except errors.NotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Member:
    place: objects.NamespacedName
    credentials: SecretCredentials
    client: Client


class PoolMembers:
    """Keeps a registry as the Clusters say. `connect` makes a client of credentials, `join` a cluster of a client.

    `learn` is told what people say about each. A cluster is named as its Cluster is.
    """

    def __init__(
        self,
        registry: Registry,
        meta: Informers,
        clusters: Resource,
        *,
        connect: Callable[[Credentials], Client],
        join: Callable[[str, Client], Cluster],
        learn: Callable[[str, ClusterIdentity], None],
        headroom: pool.Headroom,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
    ) -> None:
        self._registry, self._meta, self._scope = registry, meta, Scope(clusters)
        self._connect, self._join_cluster, self._learn, self._headroom = connect, join, learn, headroom
        self._clusters: store.Store | None = None
        self._members: dict[str, _Member] = {}
        self._secrets: dict[objects.NamespacedName, tuple[store.Store, contextlib.AsyncExitStack]] = {}
        self._seen: set[objects.NamespacedName] = set()
        self._queue: queue.Queue[objects.NamespacedName] = queue.Queue(
            "pool-members", clock=clock, random=random, metrics=metrics
        )
        self._controller = controller.Controller(
            "pool-members", self._reconcile, queue=self._queue, metrics=metrics, workers=1
        )

    @property
    def is_known(self) -> bool:
        """Whether all Clusters were looked at once: from then on, one that is not there is not in the pool."""
        known = self._clusters
        return known is not None and known.knowledge.is_complete and self._seen >= set(known)

    async def run(self) -> None:
        """Follow the Clusters until drained; then all of them leave."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._leave_all)
            self._clusters = await stack.enter_async_context(self._meta.share(self._scope))
            stack.callback(self._clusters.listen(self._queue.add, table.own_key))
            await self._controller.run()

    def drain(self) -> None:
        """Begin nothing new."""
        self._controller.drain()

    def cluster(self, name: str) -> objects.Object | None:
        """The Cluster of a member."""
        member = self._members.get(name)
        return None if member is None or self._clusters is None else self._clusters.get(member.place)

    async def _reconcile(self, place: objects.NamespacedName) -> controller.Outcome:
        assert self._clusters is not None  # the controller runs inside of `run`
        found = self._clusters.get(place)
        member = self._members.get(place.name)
        if member is not None and member.place != place:
            log.warning("two Clusters have one name", extra={"cluster": str(place), "other": str(member.place)})
        elif found is None or found.status.get("phase") == Phase.FAILED:
            await self._leave(place.name, place)
        elif member is not None or found.status.get("phase") == Phase.PROVISIONED:
            await self._keep(found, member)
        self._seen.add(place)
        return controller.Done()

    async def _keep(self, found: objects.Object, member: _Member | None) -> None:
        secret = await self._secret(found.key)
        self._learn(found.name, self._facts(found))
        if member is not None:
            if secret is not None:
                member.credentials.observe(secret)
        elif secret is not None:
            credentials = SecretCredentials(secret, key=SECRET_KEY)
            client = self._connect(credentials)
            self._members[found.name] = _Member(found.key, credentials, client)
            self._registry.join(self._join_cluster(found.name, client))
            log.info("a cluster joins the pool", extra={"cluster": found.name})

    def _facts(self, found: objects.Object) -> ClusterIdentity:
        headroom, text = self._headroom, found.annotations.get(keys.HEADROOM, "")
        try:
            headroom = pool.headroom(text) if text else headroom
        except pool.HeadroomError as error:
            log.warning("a headroom is left as it was", extra={"cluster": found.name, "error": str(error)})
        is_leaving = found.is_leaving or found.annotations.get(keys.LEAVING) == "true"
        has_agent = found.annotations.get(keys.AGENT) == "true"
        return ClusterIdentity(dict(found.labels), headroom, is_leaving, has_agent)

    async def _secret(self, place: objects.NamespacedName) -> objects.Object | None:
        if place not in self._secrets:
            scope = Scope(resources.SECRETS, namespace=place.namespace, fields=f"metadata.name={place.name}")
            stack = contextlib.AsyncExitStack()
            cache = await stack.enter_async_context(self._meta.share(scope))
            stack.callback(cache.listen(self._queue.add, table.own_key))
            self._secrets[place] = cache, stack
        cache, _ = self._secrets[place]
        await cache.knowledge.wait_complete(FIRST_LIST)
        return cache.get(place)

    async def _leave(self, name: str, place: objects.NamespacedName) -> None:
        if (kept := self._secrets.pop(place, None)) is not None:
            await kept[1].aclose()
        if (member := self._members.pop(name, None)) is not None:
            await self._registry.leave(name)
            await member.client.close()
            log.info("a cluster left the pool", extra={"cluster": name})

    async def _leave_all(self) -> None:
        for name, member in list(self._members.items()):
            await self._leave(name, member.place)
        for _, stack in self._secrets.values():
            await stack.aclose()
        self._secrets.clear()
