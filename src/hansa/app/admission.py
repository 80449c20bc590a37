"""Wires an admission webhook into a program: its server, its certificate and its configuration.

Used by the programs that serve one. Which mutations it serves is left to them.
"""

import contextlib
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from hansa.admission import configuration, self_signed, serving
from hansa.admission.mutation import Mutation
from hansa.admission.serving import CertificateFiles
from hansa.admission.settings import WebhookSettings
from hansa.admission.shared_certificate import SharedCertificate
from hansa.admission.webhook import Webhook
from hansa.app.program import UPPER, Program
from hansa.control.manager import Component
from hansa.kube.client import Client

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def served(
    program: Program,
    client: Client,
    settings: WebhookSettings,
    mutations: Sequence[Mutation],
    *,
    webhook: str = configuration.WEBHOOK,
) -> AsyncIterator[None]:
    """Add the webhook to the program's manager, with a socket and a certificate that are open meanwhile."""
    listening = serving.listen(settings.host, settings.port)
    address = settings.address(listening.getsockname()[1])
    owner = await configuration.owner_reference(client, settings.owner) if settings.owner else None
    common = {"failure_policy": settings.failure_policy, "name": settings.name, "webhook": webhook}

    async def publish(ca: bytes) -> None:
        if settings.is_installed:
            made = configuration.of(mutations, address, ca=ca, owner=owner, **common)
            if await configuration.ensure(client, made):
                log.info("webhook configuration written", extra={"configuration": settings.name})

    certify: Callable[[], Awaitable[None]]  # writes the configuration with the present CA
    with listening, contextlib.ExitStack() as stack:
        if settings.secret:
            shared = await _shared(stack, program, client, settings)
            files, certify = shared.files, lambda: publish(shared.ca)
            program.manager.serve(Component("certificate", lambda: shared.follow(publish)))
        else:
            files, ca = _own(stack, program, settings)
            certify = partial(publish, ca)
        parts = Webhook(
            program.informers(UPPER, client),
            mutations=mutations,
            tls=serving.Tls(files),
            listening=listening,
            publish=certify,
            clock=program.clock,
        )
        program.manager.serve(Component("webhook", parts.serve))
        program.manager.work(Component("configuration", parts.install))  # of several, with the address of the leader
        yield


def _own(stack: contextlib.ExitStack, program: Program, settings: WebhookSettings) -> tuple[CertificateFiles, bytes]:
    return stack.enter_context(self_signed.certificate_files(settings, program.clock.wall()))


async def _shared(
    stack: contextlib.ExitStack, program: Program, client: Client, settings: WebhookSettings
) -> SharedCertificate:
    assert settings.secret is not None  # the caller checked it
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hansa-webhook-")))
    made = SharedCertificate(
        client, settings.secret, folder, names=settings.names(), client_ca=settings.client_ca, clock=program.clock
    )
    await made.read()
    return made
