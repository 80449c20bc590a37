"""The tenant operator in the process of a test, with provisioners of the test, on a real meta cluster."""

import asyncio
import contextlib
import functools
import ipaddress
import random
from collections.abc import AsyncIterator
from typing import Any

from hansa.control import event_recorder, informer
from hansa.kube.client import Client
from hansa.runtime import clock, metrics, tasks
from hansa.tenancy.operator.controller import VirtualClusters
from hansa.tenancy.operator.provisioning import Provisioner
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool


@contextlib.asynccontextmanager
async def operator(client: Client, *provisioners: Provisioner, **options: Any) -> AsyncIterator[VirtualClusters]:
    """Run the loop for as long as the block lasts. The first provisioner is the default."""
    given: dict[str, Any] = {"clock": clock.SystemClock(), "random": random.Random(0), "metrics": metrics.Registry()}
    async with tasks.Supervisor(**given) as supervisor:
        caches = informer.Informers("meta", client, supervisor=supervisor, **given)
        recorder = event_recorder.Recorder("hansa-test", client, **given)
        loop = VirtualClusters(
            client,
            caches,
            provisioners={one.name: one for one in provisioners},
            default=provisioners[0].name,
            pool=ServiceCidrPool(ipaddress.ip_network("10.224.0.0/11")),
            recorder=recorder,
            **{**given, **options},
        )
        supervisor.start("events", recorder.run)
        supervisor.start("loop", loop.run)
        for one in provisioners:
            supervisor.start(one.name, functools.partial(one.run, loop.requeue))
        yield loop
        loop.drain()
        await asyncio.sleep(0)
