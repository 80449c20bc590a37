"""Reads clusters for a question: connections that are closed together, objects, and the Events of a pod."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hansa.app.program import agent
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.runtime.errors import HansaError
from hansa.scheduling import snapshot
from hansa.scheduling.slicing.annotations import PoolSettings
from hansa.scheduling.slicing.pool import Headroom
from hansa.scheduling.snapshot import Snapshot
from hansa.scheduling.watching import listing

CONCURRENT: Final = 32  # clusters that are read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The clusters that a question is about. Flags of the command fill it."""

    cluster: CredentialSource = field(default_factory=CredentialSource)  # the pod's, or the meta cluster
    lowers: Mapping[str, CredentialSource] = field(default_factory=dict)  # behind virtual nodes, by cluster
    meta: CredentialSource | None = None  # of the VirtualCluster that the cluster is the control plane of
    super_cluster: CredentialSource | None = None  # None: the meta cluster itself, or a pool
    vc: str = ""  # namespace/name of the VirtualCluster; found by the cluster if empty
    placing: PoolSettings = field(default_factory=PoolSettings)  # the flags of vc-scheduler
    headroom: Headroom = field(default_factory=Headroom)


class Reader:
    """Connections to clusters. Nothing is written through them."""

    def __init__(self, command: str, stack: contextlib.AsyncExitStack) -> None:
        self._command, self._stack = command, stack
        self.clients: dict[str, Client] = {}  # of snapshots, by the name of the cluster

    async def connect(self, source: CredentialSource) -> Client:
        """A client with the credentials of flags."""
        return await self.client(await source.find())

    async def client(self, credentials: Credentials) -> Client:
        """A client with these credentials."""
        made = Client(credentials, user_agent=agent(self._command), deadline=REQUEST_DEADLINE)
        return await self._stack.enter_async_context(made)

    async def snapshot(self, name: str, source: CredentialSource | Credentials) -> Snapshot:
        """A cluster; unknown if it cannot be connected or read."""
        try:
            credentials = await source.find() if isinstance(source, CredentialSource) else source
            client = self.clients[name] = await self.client(credentials)
        except HansaError as error:
            return snapshot.unread(name, str(error))
        return await listing.listed(name, client)


@contextlib.asynccontextmanager
async def opened(command: str) -> AsyncIterator[Reader]:
    """A reader whose connections are closed at the end."""
    async with contextlib.AsyncExitStack() as stack:
        yield Reader(command, stack)


async def found(client: Client, resource: Resource, name: NamespacedName) -> Object:
    """An object that the user named."""
    try:
        return await client.get(resource, name.name, namespace=name.namespace)
    except errors.NotFound:
        kind = resource.kind.lower()
        shown = str(name) if name.namespace else name.name
        raise HansaError(f"{kind} {shown} does not exist") from None


async def every(client: Client, resource: Resource, *, namespace: str = "") -> list[Object]:
    """All objects of a kind; none if the cluster does not have the kind."""
    with contextlib.suppress(errors.NotFound):
        return [one async for page in client.pages(resource, namespace=namespace) for one in page.items]
    return []


async def events(client: Client, pod: Object) -> list[Object]:
    """The Events of a pod, oldest first; none if they may not be read."""
    if not pod.uid:
        return []
    try:
        fields = f"involvedObject.uid={pod.uid}"
        pages = client.pages(resources.EVENTS, namespace=pod.namespace, fields=fields)
        return sorted([one async for page in pages for one in page.items], key=time_of)
    except errors.ApiError:
        return []


def time_of(event: Object) -> str:
    """When an Event happened last."""
    series: dict[str, Any] = event.get("series") or {}
    made = event.metadata.creation_timestamp
    times: Iterable[Any] = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), made.isoformat() if made else ""))
