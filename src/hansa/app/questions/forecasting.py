"""`hansa whatif`: reads virtual nodes, a federation or a pool once, and forecasts what changes would do."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum

from hansa.app.questions import federation, pool, reading, virtual_clusters, virtual_nodes
from hansa.app.questions.reading import Reader, Where
from hansa.federation.binding.federation_world import FederationWorld
from hansa.kube.client import Client
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError
from hansa.scheduling.forecasting import forecast
from hansa.scheduling.forecasting.changes import Change
from hansa.scheduling.forecasting.forecast import Forecast
from hansa.scheduling.forecasting.pool_forecast import PoolForecast
from hansa.scheduling.forecasting.virtual_node_world import VirtualNodeWorld
from hansa.tenancy.api import VirtualCluster


class Mode(StrEnum):
    """Values of --mode."""

    AUTO = "auto"
    VIRTUAL_NODES = "virtual-nodes"
    FEDERATION = "federation"
    POOL = "pool"


async def whatif(where: Where, changes: Sequence[Change], mode: Mode) -> Forecast:
    """What would happen after all of these changes. Nothing is written."""
    async with reading.opened("whatif") as reader:
        client = await reader.connect(where.cluster)
        match await _detected(client, where) if mode is Mode.AUTO else mode:
            case Mode.VIRTUAL_NODES:
                found = await virtual_nodes.read(reader, client, where)
                return forecast.forecast(VirtualNodeWorld(found), changes)
            case Mode.FEDERATION:
                return forecast.forecast(FederationWorld(await federation.read(reader, client)), changes)
            case _:
                return forecast.forecast(await _pool(reader, client, where), changes)


async def _detected(client: Client, where: Where) -> Mode:
    if where.lowers:
        return Mode.VIRTUAL_NODES
    clusters, targets = await asyncio.gather(pool.members(client), federation.targets(client))
    if clusters and targets:
        raise HansaError("this cluster has a pool and a federation: choose one with --mode")
    if not clusters and not targets:
        raise HansaError(
            "this cluster has no pool (Clusters of a meta cluster) and no federation (Targets); for virtual nodes, give"
            " --config"
        )
    return Mode.POOL if clusters else Mode.FEDERATION


async def _pool(reader: Reader, meta: Client, where: Where) -> PoolForecast:
    clusters, vcs = await asyncio.gather(pool.members(meta), virtual_clusters.running(meta))

    async def tenant(vc: VirtualCluster) -> pool.Tenant:
        return await pool.tenant(await virtual_clusters.connect(reader, meta, vc), vc)

    supers, tenants = await asyncio.gather(
        pool.super_clusters(reader, meta, where, clusters), tasks.gather(tenant, vcs, at_most=reading.CONCURRENT)
    )
    names = {vc.root: str(vc.key) for vc in vcs}
    return PoolForecast(pool.world(where, supers, vcs, tenants), names)
