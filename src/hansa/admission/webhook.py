"""The admission webhook of a cluster: the caches that its mutations read, the server, and its configuration.

Used by `hansa webhook`. The mutations are given by the mode.
"""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from hansa.admission import review, serving
from hansa.admission.mutation import Caches, Mutation
from hansa.control.informer import Informers, Scope
from hansa.runtime import clock

CHECK_SECONDS = 10.0  # between two reads of the configuration
LIST_SECONDS = 60.0  # for the first full lists; after that the program reports which one is missing, and why


class Webhook:
    """Serves a list of mutations. `publish` installs its configuration."""

    def __init__(
        self,
        informers: Informers,
        *,
        mutations: Sequence[Mutation],
        tls: serving.Tls,
        listening: socket.socket,
        publish: Callable[[], Awaitable[None]],
        clock: clock.Clock,
    ) -> None:
        self._clock = clock
        self._informers, self._publish = informers, publish
        self._mutations, self._tls, self._socket = mutations, tls, listening

    async def serve(self) -> None:
        """Serve until cancelled, as soon as the caches are synced."""
        async with self._caches() as caches:
            await serving.Server(
                lambda body: review.respond(body, self._mutations, caches), self._tls, self._socket
            ).run()

    async def install(self) -> None:
        """Keep the configuration as it is wanted, once the caches are synced, so that no request waits for them.

        Another replica, which has ended since, may have written its own address, or a backup brought a former one back.
        """
        async with self._caches():
            while True:
                await self._publish()
                await self._clock.sleep(CHECK_SECONDS)

    @contextlib.asynccontextmanager
    async def _caches(self) -> AsyncIterator[Caches]:
        resources = dict.fromkeys(resource for mutation in self._mutations for resource in mutation.reads)
        async with contextlib.AsyncExitStack() as stack:
            stores = {one: await stack.enter_async_context(self._informers.share(Scope(one))) for one in resources}
            for store in stores.values():
                await store.freshness.wait_synced(LIST_SECONDS)
            yield stores
