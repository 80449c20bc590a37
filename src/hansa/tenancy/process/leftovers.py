"""Takes away control planes whose VirtualCluster went without asking: somebody removed its finalizer by hand.

Only those of this meta cluster are looked at, and each is asked for once more before anything is done.
"""

import logging

from hansa.control.informer import Informers, Scope
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.runtime import clock
from hansa.tenancy import root_namespace
from hansa.tenancy.api import VIRTUAL_CLUSTERS, VirtualCluster
from hansa.tenancy.process.provisioner import ProcessProvisioner

log = logging.getLogger(__name__)
PERIOD = 600.0  # seconds
FIRST_LIST_SECONDS = 3600.0


async def sweep(provisioner: ProcessProvisioner, client: Client, *, informers: Informers, clock: clock.Clock) -> None:
    """Look for them now, and again and again."""
    async with informers.share(Scope(VIRTUAL_CLUSTERS)) as vcs:
        await vcs.knowledge.wait_complete(FIRST_LIST_SECONDS)
        while True:
            known = {vc.uid for vc in vcs.values()}
            for vc in [one for one in provisioner.remembered() if one.uid not in known]:
                if await _is_gone(client, vc):
                    log.warning("a tenant's VirtualCluster is gone, and so goes the rest", extra={"namespace": vc.root})
                    await provisioner.remove(vc)
                    await root_namespace.remove(client, vc)
            await clock.sleep(PERIOD)


async def _is_gone(client: Client, vc: VirtualCluster) -> bool:
    try:
        return (await client.get(VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace)).uid != vc.uid
    except errors.NotFound:
        return True
