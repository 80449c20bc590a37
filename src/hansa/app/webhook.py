"""`hansa webhook`: the admission webhook of an upper cluster."""

import contextlib
from collections.abc import Iterator

from hansa.admission import configuration, self_made, serving
from hansa.admission.settings import Settings
from hansa.admission.webhook import Webhook
from hansa.app.program import UPPER, Program, agent
from hansa.control.manager import Part
from hansa.kube.client import Client
from hansa.kube.credentials.source import Source
from hansa.runtime import clock


async def run(settings: Settings) -> None:
    """Run the admission webhook of an upper cluster until a signal ends it."""
    program = Program()
    access = await Source(settings.kubeconfig).find()
    listening = serving.listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    with listening, _webhook_pair(settings, program.clock) as (pair, ca):
        async with Client(access, user_agent=agent("webhook")) as client:
            wanted = configuration.of(
                settings.address(port), ca=ca, failure_policy=settings.failure_policy, name=settings.name
            )
            parts = Webhook(
                client,
                program.informers(UPPER, client),
                steering_keys=settings.steering_keys,
                tls=serving.Tls(pair),
                listening=listening,
                wanted=wanted if settings.is_installed else None,
            )
            program.manager.serve(Part("webhook", parts.serve))
            program.manager.serve(Part("configuration", parts.install))
            await program.manager.run()


@contextlib.contextmanager
def _webhook_pair(settings: Settings, clock: clock.Clock) -> Iterator[tuple[serving.Pair, bytes]]:
    """The certificate to serve with, and what the API server must trust for that."""
    if settings.certificate and settings.key:
        yield serving.Pair(settings.certificate, settings.key, settings.client_ca), settings.ca_bundle
    else:
        with self_made.pair(settings.names(), clock.wall(), client_ca=settings.client_ca) as made:
            yield made
