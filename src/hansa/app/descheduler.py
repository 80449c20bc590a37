"""`hansa descheduler`: wires the descheduler of an upper cluster."""

from dataclasses import dataclass

from hansa.app.program import UPPER, Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.manager import Component, Lead
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.scheduling.descheduling.descheduler import Descheduler
from hansa.scheduling.descheduling.policy import Policy

LEASE = "hansa-descheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeschedulerSettings:
    """One upper cluster, and the policy."""

    upper: CredentialSource
    policy: Policy
    round_seconds: float
    is_dry: bool = False
    metrics_address: str = ""
    election_namespace: str = ""


async def run(settings: DeschedulerSettings) -> None:
    """Deschedule until a signal ends the program."""
    program = Program()
    access = await settings.upper.find()
    async with Client(access, user_agent=agent("descheduler"), deadline=REQUEST_DEADLINE) as client:
        upper = program.cluster(UPPER, client)
        recorder = Recorder("hansa-descheduler", client, **program.common())
        descheduler = Descheduler(
            upper,
            settings.policy,
            round_seconds=settings.round_seconds,
            is_dry=settings.is_dry,
            recorder=recorder,
            **program.common(),
        )
        program.manager.serve(Component("events", recorder.run, recorder.drain))
        program.manager.work(Component("descheduler", descheduler.run, descheduler.drain))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await program.manager.run(*_election(settings, program, upper))


def _election(settings: DeschedulerSettings, program: Program, upper: Cluster) -> tuple[Lead, ...]:
    if not settings.election_namespace:
        return ()
    return (program.elect(LEASE, upper, namespace=settings.election_namespace),)
