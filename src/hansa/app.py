"""Settings become components, and components one program: the only place where all parts are put together."""

import asyncio
import contextlib
import os
import random as randomness
import sys
from collections.abc import Iterator
from pathlib import Path

import hansa
from hansa.admission import configuration, self_made, serving
from hansa.admission.settings import Settings as WebhookSettings
from hansa.admission.webhook import Webhook
from hansa.control.informer import Informers
from hansa.control.manager import Manager, Part
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials, incluster, kubeconfig
from hansa.runtime import clock, metrics

UPPER = "upper"


def new_loop() -> asyncio.AbstractEventLoop:
    """The event loop of programs that run for long: uvloop where it is there."""
    if sys.platform == "linux":
        import uvloop  # noqa: PLC0415 - other systems don't have it

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


class Program:
    """What every component is given, and the manager that runs them."""

    def __init__(self) -> None:
        self.clock = clock.SystemClock()
        self.random = randomness.Random()  # noqa: S311 - spreads load, guards nothing
        self.metrics = metrics.Registry()
        self.manager = Manager(clock=self.clock, random=self.random, metrics=self.metrics)

    def informers(self, cluster: str, client: Client) -> Informers:
        """The caches of a cluster."""
        return Informers(
            cluster,
            client,
            supervisor=self.manager.supervisor,
            clock=self.clock,
            random=self.random,
            metrics=self.metrics,
        )


async def webhook(settings: WebhookSettings) -> None:
    """Run the admission webhook of an upper cluster until a signal ends it."""
    program = Program()
    access = await credentials(settings.kubeconfig)
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
def _webhook_pair(settings: WebhookSettings, clock: clock.Clock) -> Iterator[tuple[serving.Pair, bytes]]:
    """The certificate to serve with, and what the API server must trust for that."""
    if settings.certificate and settings.key:
        yield serving.Pair(settings.certificate, settings.key, settings.client_ca), settings.ca_bundle
    else:
        with self_made.pair(settings.names(), clock.wall(), client_ca=settings.client_ca) as made:
            yield made


async def credentials(file: Path | None, context: str = "") -> Credentials:
    """Credentials from a kubeconfig; without one from where kubectl looks, or from the pod that we run in."""
    if file is not None:
        found = kubeconfig.from_files(file, context=context)
    elif incluster.FOLDER.exists() and "KUBECONFIG" not in os.environ:
        found = incluster.from_pod()
    else:
        found = kubeconfig.from_environment(context=context)
    await found.access()  # what cannot be read is told now, not by every part that needs it
    return found


def agent(command: str) -> str:
    """How we call ourselves towards API servers."""
    return f"hansa-{command}/{hansa.__version__}"
