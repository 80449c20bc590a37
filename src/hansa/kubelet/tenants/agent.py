"""Answers the requests of tenants' API servers: finds the tenant by its certificate, and its pod by the stamp.

Connections, limits and the audit log are here; paths are checked by `routes`, bytes are copied by `forwarding`.
"""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from hansa.kube.errors import Answer
from hansa.kubelet import actions, forwarding, pages, routes
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pages import Page
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants import node_page
from hansa.kubelet.tenants.below import Below
from hansa.kubelet.tenants.directory import Directory
from hansa.kubelet.tenants.sessions import Session, Sessions
from hansa.kubelet.tenants.tenant import Tenant
from hansa.runtime import logs, metrics

log = logging.getLogger(__name__)
JSON = "application/json"
_CONTENT = {Page.HEALTH: "text/plain; charset=utf-8", Page.METRICS: metrics.CONTENT_TYPE}  # JSON for all others


@dataclass(frozen=True, slots=True)
class _Admitted:
    tenant: Tenant | None
    refusal: Refusal | None
    session: Session


@dataclass(frozen=True, slots=True)
class TenantAgent:
    """The handler of the vn-agent's server."""

    directory: Directory
    below: Below
    sessions: Sessions
    calls: metrics.Counter  # labels: cluster (the tenant's key, or empty), action, answer
    _admitted: dict[Exchange, _Admitted] = field(default_factory=dict)

    @contextlib.contextmanager
    def admit(self, exchange: Exchange) -> Iterator[None]:
        """Count a connection against the limits of its tenant, for as long as the block lasts."""
        tenant, refusal = None, None
        try:
            tenant = self.directory.tenant(exchange.certificate_der)
        except Refusal as error:
            refusal = error
        key = tenant.key if tenant else ""
        with logs.only(tenant=key), self.sessions.open(key) as session:
            self._admitted[exchange] = _Admitted(tenant, refusal, session)
            try:
                yield
            finally:
                del self._admitted[exchange]

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request, or raise a Refusal."""
        admitted, answer = self._admitted[exchange], Answer.ERROR
        try:
            await self._answer(admitted, exchange)
            answer = Answer.OK
        except Refusal as error:
            answer = error.answer
            raise
        finally:
            self._count(admitted.tenant, exchange, answer)

    def distrusted(self) -> None:
        """Count a TLS handshake that failed: the certificate is of no tenant's CA."""
        self.calls.labels("", actions.CONNECT, Answer.DENIED).inc()

    async def _answer(self, admitted: _Admitted, exchange: Exchange) -> None:
        tenant = admitted.tenant
        if tenant is None:
            raise admitted.refusal or Refusal(401, "Unauthorized")
        if admitted.session.is_surplus:
            raise Refusal(429, "this tenant has too many connections to the node; try again")
        if (page := pages.parse(exchange.method, exchange.target)) is not None:
            return await self._page(admitted, tenant, page, exchange)
        call = routes.parse(exchange.method, exchange.target)
        pod = await self.below.find(tenant, call)
        _audit(call)
        return await forwarding.forward(call, pod, exchange, pace=admitted.session.bandwidth.take)

    async def _page(self, admitted: _Admitted, tenant: Tenant, page: Page, exchange: Exchange) -> None:
        body = await node_page.body(page, tenant, self.below)
        await admitted.session.bandwidth.take(len(body))
        await exchange.answer(200, body, content=_CONTENT.get(page, JSON))

    def _count(self, tenant: Tenant | None, exchange: Exchange, answer: Answer) -> None:
        """A tenant that left meanwhile has no series any more."""
        if tenant is None or self.directory.has(tenant.key):
            self.calls.labels(tenant.key if tenant else "", actions.of(exchange.target), answer).inc()


def _audit(call: routes.Call) -> None:
    """One line for each call; the tenant is bound by `admit`. A command may have secrets: only its length is logged."""
    command = [value for name, value in call.query if name == "command"]
    extra = {"pod": f"{call.namespace}/{call.pod}", "container": call.container}
    level = logging.INFO if call.action.is_upgrade else logging.DEBUG
    log.log(level, "%s of pod", call.action, extra=extra | {"command_length": sum(map(len, command))})
