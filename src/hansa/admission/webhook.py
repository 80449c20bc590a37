"""The webhook of an upper cluster: caches that its answers need, the server, and the configuration that leads to it."""

import contextlib
import socket
from collections.abc import AsyncIterator

from hansa.admission import configuration, review, serving
from hansa.admission.mutation import Mutation
from hansa.control import store
from hansa.control.informer import Informers, Scope
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object

LIST_SECONDS = 60.0  # for the first full lists, before it is told why they don't come
SCOPES = (Scope(resources.NODES), Scope(resources.PERSISTENT_VOLUME_CLAIMS), Scope(resources.PERSISTENT_VOLUMES))


class Webhook:
    """Answers when it knows the cluster. `wanted` is the configuration to put there, if we are to do that."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        steering_keys: frozenset[str],
        tls: serving.Tls,
        listening: socket.socket,
        wanted: Object | None,
    ) -> None:
        self._client, self._informers, self._wanted = client, informers, wanted
        self._steering_keys, self._tls, self._socket = steering_keys, tls, listening

    async def serve(self) -> None:
        """Answer until cancelled."""
        async with self._caches() as (nodes, claims, volumes):
            mutate = Mutation(self._steering_keys, nodes=nodes, claims=claims, volumes=volumes)
            await serving.Server(lambda body: review.answer(body, mutate, kind="Pod"), self._tls, self._socket).run()

    async def install(self) -> None:
        """Let the API server ask us, as soon as we can answer."""
        if self._wanted is not None:
            async with self._caches():
                await configuration.install(self._client, self._wanted)

    @contextlib.asynccontextmanager
    async def _caches(self) -> AsyncIterator[list[store.Store]]:
        async with contextlib.AsyncExitStack() as stack:
            stores = [await stack.enter_async_context(self._informers.share(scope)) for scope in SCOPES]
            for one in stores:
                await one.knowledge.wait_complete(LIST_SECONDS)
            yield stores
