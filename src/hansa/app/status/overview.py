"""Reads all topics of all clusters at once; what is unreachable is a part of the result and hides nothing else."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hansa.app.program import agent
from hansa.app.status import federation, lags, leaders, pool, tenants, virtual_nodes, warnings, workloads
from hansa.app.status.reading import Reader
from hansa.app.status.section import ClusterStatus, Section
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.runtime.clock import Clock
from hansa.runtime.errors import HansaError

TOPICS: Final[tuple[tuple[str, Callable[[Reader], Awaitable[Section]]], ...]] = (
    (workloads.TITLE, workloads.read),
    (leaders.TITLE, leaders.read),
    (tenants.TITLE, tenants.read),
    (pool.TITLE, pool.read),
    (virtual_nodes.TITLE, virtual_nodes.read),
    (federation.TARGETS, federation.read_targets),
    (federation.SOURCES, federation.read_sources),
    (lags.TITLE, lags.read),
    (warnings.TITLE, warnings.read),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster that is asked for: how it is called, and where its credentials are."""

    name: str
    source: CredentialSource


async def read(
    clusters: Iterable[Asked], *, deadline: float, clock: Clock, metrics: Sequence[str] = ()
) -> list[ClusterStatus]:
    """The status of these clusters, and of programs that serve metrics at these addresses."""
    found = await asyncio.gather(*(_cluster(one, deadline=deadline, now=clock.wall()) for one in clusters))
    return [*found, *([await _programs(metrics, deadline=deadline)] if metrics else [])]


async def _cluster(asked: Asked, *, deadline: float, now: datetime.datetime) -> ClusterStatus:
    try:
        credentials = await asked.source.find()
        server = (await credentials.access()).server
    except HansaError as error:
        return ClusterStatus(asked.name, unreachable=str(error))
    async with Client(credentials, user_agent=agent("status"), deadline=deadline) as client:
        try:
            version = await client.version()
        except HansaError as error:
            return ClusterStatus(asked.name, server, unreachable=str(error))
        reader = Reader(client, now, deadline)
        sections = await asyncio.gather(*(reader.section(title, topic) for title, topic in TOPICS))
    return ClusterStatus(asked.name, server, version, tuple(one for one in sections if one.rows or one.unread))


async def _programs(addresses: Sequence[str], *, deadline: float) -> ClusterStatus:
    rows = await asyncio.gather(*(lags.of_address(address, deadline=deadline) for address in addresses))
    return ClusterStatus("programs", sections=(Section(lags.TITLE, lags.COLUMNS, tuple(rows)),))
