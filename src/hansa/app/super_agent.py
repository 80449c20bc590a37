"""`hansa super-agent`: ends the pods of tenants in a super cluster that is cut off, before they begin elsewhere."""

from dataclasses import dataclass

from hansa.app.program import Program, agent
from hansa.control.event_recorder import Recorder
from hansa.control.manager import Component
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.kube.client import Client
from hansa.kube.credentials.source import Source
from hansa.tenancy.pool.super_agent import SuperAgent

COMPONENT = "super-agent"


@dataclass(frozen=True, slots=True)
class SuperAgentSettings:
    """What the agent is told. How long is too long stands in the fence itself."""

    super_cluster: Source
    metrics_address: str = ""


async def run(settings: SuperAgentSettings) -> None:
    """Look at the fence until a signal ends it."""
    program = Program()
    access = await settings.super_cluster.find()
    async with Client(access, user_agent=agent(COMPONENT), deadline=REQUEST_DEADLINE) as client:
        recorder = Recorder(f"hansa-{COMPONENT}", client, **program.given())
        looking = SuperAgent(client, recorder, clock=program.clock, metrics=program.metrics)
        program.manager.serve(Component("events", recorder.run, recorder.drain))
        program.manager.work(Component("fence", looking.run))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await program.manager.run()
