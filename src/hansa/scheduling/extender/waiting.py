"""Pods that a virtual node refused: when room appears below, the node is annotated, so that kube-scheduler retries.

kube-scheduler retries refused pods when a node changes, but the totals of a virtual node can stay as they are while one
of its lower nodes gets room.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime import clock

log = logging.getLogger(__name__)
DELAY: Final = 0.2  # seconds; changes within it are evaluated once
MOST: Final = 200  # pods that are evaluated for one change; the next ones for the next change
Fits = Callable[[Object, str], bool]


class Waiting:
    """Pending pods, each with the virtual nodes that refused it last."""

    def __init__(self, client: Client, *, clock: clock.Clock) -> None:
        self._client, self._clock = client, clock
        self._refused: dict[NamespacedName, tuple[Object, frozenset[str]]] = {}
        self._freed = asyncio.Event()

    def note(self, pod: Object, refused_by: Iterable[str]) -> None:
        """Remember the nodes that refuse a pod; none forgets it."""
        self._refused.pop(pod.key, None)
        if nodes := frozenset(refused_by):
            self._refused[pod.key] = pod, nodes

    def forget(self, key: NamespacedName) -> None:
        """A pod is gone, or bound."""
        self._refused.pop(key, None)

    def freed(self, _cluster: str) -> None:
        """A lower cluster may have room."""
        if self._refused:
            self._freed.set()

    async def run(self, fits: Fits) -> None:
        """Annotate nodes until cancelled; `fits` is whether a pod fits a node now."""
        while True:
            await self._freed.wait()
            await self._clock.sleep(DELAY)
            self._freed.clear()
            for node in sorted(self._with_room(fits)):
                await self._annotate(node)

    def _with_room(self, fits: Fits) -> set[str]:
        found: set[str] = set()
        for key in list(itertools.islice(self._refused, MOST)):
            self._refused[key] = pod, nodes = self._refused.pop(key)  # to the end
            found.update(node for node in nodes - found if fits(pod, node))
        return found

    async def _annotate(self, node: str) -> None:
        patch: Mapping[str, object] = {"metadata": {"annotations": {keys.ROOM: self._clock.wall().isoformat()}}}
        try:
            await self._client.patch(resources.NODES, node, patch)
        except errors.ApiError as error:  # tried again with the next change; kube-scheduler retries by itself, too
            log.warning("virtual node not annotated", extra={"node": node, "error": str(error)})
