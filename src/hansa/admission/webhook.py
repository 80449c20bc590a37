"""The admission webhook of a cluster: the caches that its mutations read, the server, and its configuration.

Used by `hansa webhook`. The mutations are given by the mode.
"""

import contextlib
import socket
from collections.abc import AsyncIterator, Sequence

from hansa.admission import configuration, review, serving
from hansa.admission.mutation import Caches, Mutation
from hansa.control.informer import Informers, Scope
from hansa.kube.client import Client
from hansa.kube.objects import Object

LIST_SECONDS = 60.0  # for the first full lists; after that the program reports which one is missing, and why


class Webhook:
    """Serves a list of mutations. `wanted` is the configuration to install, or None."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        mutations: Sequence[Mutation],
        tls: serving.Tls,
        listening: socket.socket,
        wanted: Object | None,
    ) -> None:
        self._client, self._informers, self._wanted = client, informers, wanted
        self._mutations, self._tls, self._socket = mutations, tls, listening

    async def serve(self) -> None:
        """Serve until cancelled, as soon as the caches are synced."""
        async with self._caches() as caches:
            await serving.Server(
                lambda body: review.respond(body, self._mutations, caches), self._tls, self._socket
            ).run()

    async def install(self) -> None:
        """Install the configuration as soon as the caches are synced, so that no request waits for them."""
        if self._wanted is not None:
            async with self._caches():
                await configuration.install(self._client, self._wanted)

    @contextlib.asynccontextmanager
    async def _caches(self) -> AsyncIterator[Caches]:
        resources = dict.fromkeys(resource for mutation in self._mutations for resource in mutation.reads)
        async with contextlib.AsyncExitStack() as stack:
            stores = {one: await stack.enter_async_context(self._informers.share(Scope(one))) for one in resources}
            for store in stores.values():
                await store.freshness.wait_synced(LIST_SECONDS)
            yield stores
