"""Reads the CPU and memory of pods from a lower cluster: from its metrics API, or from its kubelets.

The metrics API (metrics-server) needs one request and a harmless right. Where it is missing, the kubelets are read
through the API server, which needs the right `nodes/proxy`. Where neither works there are no readings, and no error.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import quote

from hansa.engine.cluster import Cluster
from hansa.kube import errors
from hansa.kubelet.usage import readings
from hansa.kubelet.usage.readings import Readings
from hansa.runtime import clock, tasks
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
METRICS_API: Final = "/apis/metrics.k8s.io/v1beta1"
RETRY_SECONDS: Final = 60.0  # after which a way that does not exist or is not allowed is tried again
AT_ONCE: Final = 8  # kubelets that are read at the same time
DEADLINE: Final = 5.0  # seconds; metrics-server waits ten for the whole answer


class UsageSource:
    """The readings of one lower cluster. `selector` is the label selector of the pods that are of interest."""

    def __init__(self, cluster: Cluster, selector: str, *, clock: clock.Clock) -> None:
        self._cluster, self._selector, self._clock = cluster, selector, clock
        self._retry_at: dict[str, float] = {}  # by way
        self._problems: dict[str, str] = {}  # by way, to log each once

    async def read(self, nodes: Iterable[str]) -> Readings:
        """The present readings; `nodes` are the lower nodes on which the pods are."""
        found = await self._try("metrics API", self._of_metrics_api)
        if found is None:
            found = await self._try("kubelets", lambda: self._of_kubelets(nodes))
        return found or {}

    async def _try(self, way: str, read: Callable[[], Awaitable[Readings]]) -> Readings | None:
        if self._clock.now() < self._retry_at.get(way, 0.0):
            return None
        try:
            found = await read()
        except HansaError as error:
            if isinstance(error, errors.NotFound | errors.Denied):
                self._retry_at[way] = self._clock.now() + RETRY_SECONDS
            self._note(way, str(error))
            return None
        self._note(way, "")
        return found

    def _note(self, way: str, problem: str) -> None:
        if problem and problem != self._problems.get(way):
            log.info("usage not read", extra={"cluster": self._cluster.name, "way": way, "error": problem})
        self._problems[way] = problem

    async def _of_metrics_api(self) -> Readings:
        """One request, or one for each namespace that the credentials may read."""
        namespaces = self._cluster.namespaces
        paths = ["/pods"] if namespaces is None else [f"/namespaces/{one}/pods" for one in sorted(namespaces)]
        found: dict[readings.Container, readings.Reading] = {}
        for path in paths:
            body = await self._get(METRICS_API + path, {"labelSelector": self._selector})
            found |= await asyncio.to_thread(readings.of_metrics_api, body)
        return found

    async def _of_kubelets(self, nodes: Iterable[str]) -> Readings:
        """A node that does not answer has no readings; if none does, this way is not available."""

        async def read(node: str) -> Readings | HansaError:
            try:
                body = await self._get(f"/api/v1/nodes/{quote(node, safe='')}/proxy/metrics/resource", {})
                return await asyncio.to_thread(readings.of_resource_metrics, body.decode(errors="replace"))
            except HansaError as error:
                return error

        answers = await tasks.gather(read, sorted(set(nodes)), at_most=AT_ONCE)
        found = [one for one in answers if not isinstance(one, HansaError)]
        if not found and answers:
            raise next(one for one in answers if isinstance(one, HansaError))
        return {key: reading for one in found for key, reading in one.items()}

    async def _get(self, path: str, query: dict[str, str]) -> bytes:
        if self._cluster.health.error:
            raise errors.Unreachable(self._cluster.health.error)
        client, doing = self._cluster.client, "read CPU and memory of pods"
        accept = "text/plain" if path.endswith("/metrics/resource") else "application/json"
        answer = await client.request("GET", path, query=query, doing=doing, accept=accept, deadline=DEADLINE)
        return answer.body
