"""`hansa multi-scheduler`: wires the scheduler extender of an upper cluster."""

import contextlib
import functools
from collections.abc import Mapping

from hansa.app.program import UPPER, Program, agent
from hansa.control import table
from hansa.control.informer import Scope
from hansa.control.manager import Component
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import multi_scheduler_settings
from hansa.modes.multi_scheduler_settings import MultiSchedulerSettings
from hansa.runtime import tasks
from hansa.scheduling.extender.extender import Extender
from hansa.scheduling.extender.lower import Lower
from hansa.scheduling.extender.server import Server
from hansa.scheduling.extender.waiting import Waiting

LIST_SECONDS = 60.0  # for the first lists of the upper cluster


async def run(settings: MultiSchedulerSettings) -> None:
    """Serve the extender until a signal ends the program."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:

        async def connected(name: str, source: CredentialSource) -> Cluster:
            access = await source.find()
            client = Client(access, user_agent=agent("multi-scheduler"), deadline=REQUEST_DEADLINE)
            return program.cluster(name, await stack.enter_async_context(client))

        upper = await connected(UPPER, settings.upper)
        lowers = {name: await connected(name, source) for name, source in settings.lowers.items()}
        manager = program.manager
        # Without leader election: each replica serves the kube-scheduler beside it, of which one leads.
        manager.serve(Component("extender", functools.partial(_serve, settings, program, upper, lowers)))
        if settings.metrics_address:
            program.serve_health(settings.metrics_address)
        await manager.run()


async def _serve(
    settings: MultiSchedulerSettings, program: Program, upper: Cluster, clusters: Mapping[str, Cluster]
) -> None:
    """Serve as soon as the upper cluster is listed. A lower cluster that is not listed yet takes no pods."""
    async with contextlib.AsyncExitStack() as stack:
        pods = await stack.enter_async_context(upper.informers.share(Scope(resources.PODS)))
        nodes = await stack.enter_async_context(upper.informers.share(Scope(resources.NODES)))
        waiting = Waiting(upper.client, clock=program.clock)
        lowers = {name: Lower(cluster, clock=program.clock, freed=waiting.freed) for name, cluster in clusters.items()}
        for lower in lowers.values():
            await lower.open()
            stack.push_async_callback(lower.close)
        for store in (pods, nodes):
            await store.freshness.wait_synced(LIST_SECONDS)
        extender = Extender(
            upper.client,
            lowers,
            nodes=nodes,
            pods=pods,
            lower_of=multi_scheduler_settings.lower_of,
            request_of=multi_scheduler_settings.request_of,
            waiting=waiting,
        )
        stack.callback(pods.listen(extender.observe, table.own_key))
        task = program.manager.supervisor.start("waiting-pods", functools.partial(waiting.run, extender.fits))
        stack.push_async_callback(tasks.cancel, task)
        await Server(extender, settings.host, settings.port).run()
