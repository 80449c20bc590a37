"""Removes control planes whose VirtualCluster does not exist any more, since its finalizer was removed by hand.

It runs beside the controller, for the process provisioner only. It handles control planes of this meta cluster only,
and reads each VirtualCluster from the API server before it removes anything.
"""

import logging

from hansa.control.informer import Informers, Scope
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.runtime import clock
from hansa.tenancy.api import VIRTUAL_CLUSTERS, VirtualCluster
from hansa.tenancy.operator import root_namespace
from hansa.tenancy.operator.process.provisioner import ProcessProvisioner

log = logging.getLogger(__name__)
PERIOD = 600.0  # seconds
FIRST_LIST_SECONDS = 3600.0


async def sweep(provisioner: ProcessProvisioner, client: Client, *, informers: Informers, clock: clock.Clock) -> None:
    """Remove orphans now and periodically."""
    async with informers.share(Scope(VIRTUAL_CLUSTERS)) as vcs:
        await vcs.freshness.wait_synced(FIRST_LIST_SECONDS)
        while True:
            known = {vc.uid for vc in vcs.values()}
            for vc in [one for one in provisioner.recorded() if one.uid not in known]:
                if await _is_gone(client, vc):
                    log.warning("removing an orphaned control plane", extra={"namespace": vc.root})
                    await provisioner.remove(vc)
                    await root_namespace.remove(client, vc)
            await clock.sleep(PERIOD)


async def _is_gone(client: Client, vc: VirtualCluster) -> bool:
    try:
        return (await client.get(VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace)).uid != vc.uid
    except errors.NotFound:
        return True
