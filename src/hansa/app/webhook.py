"""`hansa webhook`: wires the admission webhook of an upper cluster from its settings."""

from hansa.admission.settings import WebhookSettings
from hansa.app import admission
from hansa.app.program import Program, agent
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import tensile_admission


async def run(settings: WebhookSettings) -> None:
    """Run the admission webhook of an upper cluster until a signal ends it."""
    program = Program()
    access = await CredentialSource(settings.kubeconfig).find()
    mutations = tensile_admission.mutations(settings.upper_label_keys, program.clock)
    async with (
        Client(access, user_agent=agent("webhook")) as client,
        admission.served(program, client, settings, mutations),
    ):
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await program.manager.run()
