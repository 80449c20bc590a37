"""`hansa super-agent`: wires the agent that deletes tenants' pods in a super cluster that is cut off."""

from dataclasses import dataclass

from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.manager import Component
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.tenancy.pool.super_agent import SuperAgent

COMPONENT = "super-agent"


@dataclass(frozen=True, slots=True)
class SuperAgentSettings:
    """The settings of the agent. Durations are in the fence itself."""

    super_cluster: CredentialSource
    metrics_address: str = ""


async def run(settings: SuperAgentSettings) -> None:
    """Check the fence until a signal ends the program."""
    program = Program()
    access = await settings.super_cluster.find()
    async with Client(access, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE) as client:
        recorder = Recorder(f"hansa-{COMPONENT}", client, **program.common())
        fence_agent = SuperAgent(client, recorder, clock=program.clock, metrics=program.metrics)
        program.manager.serve(Component("events", recorder.run, recorder.drain))
        program.manager.work(Component("fence", fence_agent.run))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await program.manager.run()
