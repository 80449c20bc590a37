"""`hansa webhook`: wires the admission webhook of an upper cluster from its settings."""

from hansa.admission import configuration, self_signed, serving
from hansa.admission.settings import WebhookSettings
from hansa.admission.webhook import Webhook
from hansa.app.program import UPPER, Program, agent
from hansa.control.manager import Component
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import tensile_admission


async def run(settings: WebhookSettings) -> None:
    """Run the admission webhook of an upper cluster until a signal ends it."""
    program = Program()
    access = await CredentialSource(settings.kubeconfig).find()
    mutations = tensile_admission.mutations(settings.upper_label_keys, program.clock)
    listening = serving.listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    with listening, self_signed.certificate_files(settings, program.clock.wall()) as (files, ca):
        async with Client(access, user_agent=agent("webhook")) as client:
            wanted = configuration.of(
                mutations, settings.address(port), ca=ca, failure_policy=settings.failure_policy, name=settings.name
            )
            parts = Webhook(
                client,
                program.informers(UPPER, client),
                mutations=mutations,
                tls=serving.Tls(files),
                listening=listening,
                wanted=wanted if settings.is_installed else None,
            )
            program.manager.serve(Component("webhook", parts.serve))
            program.manager.serve(Component("configuration", parts.install))
            await program.manager.run()
