"""The kubelet API of one virtual node: authenticates and authorizes each call, finds its pod, and forwards it."""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from hansa.kubelet import forwarding, routes
from hansa.kubelet.access import Caller, NodeAccess
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.refusal import Refusal
from hansa.runtime import metrics

log = logging.getLogger(__name__)
HEALTH = "/healthz"


@dataclass(frozen=True, slots=True)
class Node:
    """A virtual node, as the handler of a server."""

    name: str
    access: NodeAccess
    pods: LinkedPods
    calls: metrics.Counter  # labels: action, answer

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request, or raise a Refusal."""
        caller = await self.access.caller(exchange.certificate, exchange.header("authorization"))
        path = exchange.target.partition("?")[0]
        if path == HEALTH and exchange.method == "GET":
            await self.access.check(caller, self.name, verb="get", subresource="proxy")
            return await exchange.answer(200, b"ok")
        # Checked before the path is parsed: a caller without rights learns nothing.
        verb = "get" if path.startswith("/containerLogs/") else "create"
        await self.access.check(caller, self.name, verb=verb, subresource="proxy")
        call = routes.parse(exchange.method, exchange.target)
        with self._counted(call):
            pod = self.pods.find(self.name, call)
            self._log(call, caller)
            return await forwarding.forward(call, pod, exchange)

    @contextlib.contextmanager
    def _counted(self, call: routes.Call) -> Iterator[None]:
        try:
            yield
        except Refusal:
            self.calls.labels(call.action, "refused").inc()
            raise
        self.calls.labels(call.action, "ok").inc()

    def _log(self, call: routes.Call, caller: Caller) -> None:
        extra = {"node": self.name, "pod": f"{call.namespace}/{call.pod}", "container": call.container}
        level = logging.INFO if call.action.is_upgrade else logging.DEBUG
        log.log(level, "%s of pod", call.action, extra=extra | {"user": caller.user})
