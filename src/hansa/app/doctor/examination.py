"""Examines clusters: all checks at once, each with a deadline, so that one that fails hides no other."""

import asyncio
import datetime
from collections.abc import Awaitable, Iterable
from typing import Final

from hansa.app.doctor import (
    certificates,
    clocks,
    dns,
    finding,
    network_policy,
    permissions,
    reachability,
    surveying,
    versions,
    webhooks,
)
from hansa.app.doctor.finding import Examined, Finding
from hansa.app.doctor.surveying import Survey
from hansa.app.doctor.visiting import Role, Visit
from hansa.app.program import agent
from hansa.app.status import leaders
from hansa.app.status.overview import Asked
from hansa.app.status.reading import Reader
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.runtime.clock import Clock
from hansa.runtime.errors import HansaError

ROUNDS: Final = 3  # deadlines that one check may take: it reads several things


async def examine(clusters: Iterable[Asked], *, deadline: float, clock: Clock, component: str = "") -> list[Examined]:
    """Examine these clusters; with a component, whether our credentials have its rights."""
    work = (_cluster(one, deadline=deadline, clock=clock, component=component) for one in clusters)
    return list(await asyncio.gather(*work))


async def _cluster(asked: Asked, *, deadline: float, clock: Clock, component: str) -> Examined:
    try:
        credentials = await asked.source.find()
        server = (await credentials.access()).server
    except HansaError as error:
        return Examined(asked.name, "", (_unreachable(str(error)),))
    async with Client(credentials, user_agent=agent("doctor"), deadline=deadline) as client:
        reader = Reader(client, clock.wall(), deadline)
        surveyed = await surveying.survey(reader, clock)
        here = surveyed.visits[0]
        if here.error is not None:
            bad = certificates.examine([here], [], clock.wall())
            return Examined(asked.name, server, (_unreachable(str(here.error)), *bad))
        findings = await _all(surveyed, here, reader, component)
    return Examined(asked.name, server, tuple(findings))


async def _all(surveyed: Survey, here: Visit, reader: Reader, component: str) -> list[Finding]:
    found = [_unread(sentence) for sentence in surveyed.unread]
    found += reachability.examine(surveyed.visits)
    checks = await asyncio.gather(
        _guarded(permissions.CHECK, permissions.examine(reader, component), reader),
        _guarded(versions.CHECK, versions.examine(surveyed.visits, reader), reader),
        _guarded(clocks.CHECK, _clocks(surveyed, here, reader), reader),
        _guarded(certificates.CHECK, _certificates(surveyed, reader), reader),
        _guarded(webhooks.CHECK, _webhooks(reader), reader),
        _guarded(dns.CHECK, dns.examine(surveyed, reader), reader),
        _guarded(network_policy.CHECK, network_policy.examine(reader), reader),
    )
    return [*found, *(one for some in checks for one in some)]


async def _clocks(surveyed: Survey, here: Visit, reader: Reader) -> list[Finding]:
    leases = await reader.list(resources.LEASES, fields=leaders.NOT_OF_NODES)
    ours = [one for one in leases.items if leaders.is_ours(one)]
    theirs = reader.now + datetime.timedelta(seconds=here.ahead)
    return list(clocks.examine(surveyed.visits, ours, theirs))


async def _certificates(surveyed: Survey, reader: Reader) -> list[Finding]:
    return list(certificates.examine(surveyed.visits, await webhooks.read(reader), reader.now))


async def _webhooks(reader: Reader) -> list[Finding]:
    return await webhooks.examine(await webhooks.read(reader), reader)


async def _guarded(check: str, work: Awaitable[list[Finding]], reader: Reader) -> list[Finding]:
    try:
        async with asyncio.timeout(reader.deadline * ROUNDS):
            return await work
    except TimeoutError:
        return [_failed(check, f"not examined within {reader.deadline * ROUNDS:g} s")]
    except (HansaError, ValueError, TypeError, KeyError, AttributeError) as error:
        # Fields of objects have any type here: what another program wrote must not hide other findings.
        return [_failed(check, str(error))]


def _failed(check: str, what: str) -> Finding:
    why = "what this check would find is not known"
    return finding.unknown(check, what, why=why, remedy="use a kubeconfig with the rights to read it")


def _unread(what: str) -> Finding:
    return _failed(reachability.CHECK, what)


def _unreachable(what: str) -> Finding:
    why = reachability.WHY[Role.CLUSTER]
    return finding.problem(reachability.CHECK, what, why=why, remedy=reachability.SILENT[Role.CLUSTER])
