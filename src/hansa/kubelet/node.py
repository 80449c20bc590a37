"""The kubelet API of one virtual node: authenticates and authorizes each call, finds its pod, and forwards it."""

import logging
from dataclasses import dataclass

from hansa.kube.errors import Answer
from hansa.kubelet import actions, forwarding, pages, rights, routes
from hansa.kubelet.access import Caller, NodeAccess
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.node_pages import NodePages
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.refusal import Refusal
from hansa.runtime import metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Node:
    """A virtual node, as the handler of a server."""

    name: str
    access: NodeAccess
    pods: LinkedPods
    pages: NodePages
    calls: metrics.Counter  # labels: action, answer

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request, or raise a Refusal."""
        answer = Answer.ERROR
        try:
            await self._handle(exchange)
            answer = Answer.OK
        except Refusal as error:
            answer = error.answer
            raise
        finally:
            self.calls.labels(actions.of(exchange.target), answer).inc()

    def distrusted(self) -> None:
        """Count a TLS handshake that failed."""
        self.calls.labels(actions.CONNECT, Answer.DENIED).inc()

    async def _handle(self, exchange: Exchange) -> None:
        caller = await self.access.caller(exchange.certificate, exchange.header("authorization"))
        # Checked before the path is parsed: a caller without rights learns nothing.
        await self.access.check(caller, self.name, rights.of(exchange.method, exchange.target))
        if (page := pages.parse(exchange.method, exchange.target)) is not None:
            return await self.pages.answer(page, exchange)
        call = routes.parse(exchange.method, exchange.target)
        pod = self.pods.find(self.name, call)
        self._log(call, caller)
        return await forwarding.forward(call, pod, exchange)

    def _log(self, call: routes.Call, caller: Caller) -> None:
        extra = {"node": self.name, "pod": f"{call.namespace}/{call.pod}", "container": call.container}
        level = logging.INFO if call.action.is_upgrade else logging.DEBUG
        log.log(level, "%s of pod", call.action, extra=extra | {"user": caller.user})
