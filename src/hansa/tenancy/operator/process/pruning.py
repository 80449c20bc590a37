"""Finds control planes of this machine whose meta cluster is gone: `hansa tenants` lists and removes them.

A meta cluster that answers is served by its vc-manager. One that does not answer may come back, so it counts as gone
only with a proof: another cluster is at its address, or it was on this machine and its kubeconfig was deleted with it.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from hansa.programs import ports, process
from hansa.tenancy.operator.process import folder as folders
from hansa.tenancy.operator.process.folder import Folder, Origin, Record

AGENT: Final = "hansa-tenants"
LOCAL: Final = frozenset({ports.LOOPBACK, "localhost", "::1"})


class State(StrEnum):
    """What is known about the meta cluster of a control plane."""

    SERVED = "served"  # it answers
    GONE = "gone"
    UNREACHABLE = "unreachable"  # it may come back
    UNKNOWN = "unknown"  # nothing is recorded about it


@dataclass(frozen=True, slots=True)
class Found:
    """A control plane of this machine."""

    folder: Folder
    record: Record | None
    processes: int
    state: State
    why: str

    @property
    def name(self) -> str:
        """Namespace and name of the VirtualCluster, or the name of the folder."""
        return f"{self.record.namespace}/{self.record.name}" if self.record else self.folder.id


async def survey(state: Path, *, alive: Collection[str], deadline: float) -> list[Found]:
    """All control planes in a state folder; `alive` are the uids of meta clusters that answer."""
    running = process.running(state)
    numbers = [owner for owner, _ in running]
    known = [(one, one.record()) for one in folders.folders(state)]
    metas = {(record.meta, record.origin) for _, record in known if record}
    judge = partial(judged, alive=alive, deadline=deadline)
    verdicts = dict(zip(metas, await asyncio.gather(*(judge(*meta) for meta in metas)), strict=True))
    unreadable = (State.UNKNOWN, "its record cannot be read")
    return [
        Found(
            tenant,
            record,
            numbers.count(tenant.id),
            *(verdicts[record.meta, record.origin] if record else unreadable),
        )
        for tenant, record in [*known, *_without_folder(state, numbers)]
    ]


def _without_folder(state: Path, owners: Iterable[str]) -> list[tuple[Folder, None]]:
    """Processes whose folder was removed by hand."""
    paths = [state / "tenants" / owner for owner in dict.fromkeys(owners) if owner]
    return [(Folder(path), None) for path in paths if not path.exists()]


async def judged(meta: str, origin: Origin, *, alive: Collection[str], deadline: float) -> tuple[State, str]:
    """What is known about a meta cluster, and why."""
    if meta in alive:
        return State.SERVED, "its meta cluster answers"
    if not origin.server:
        return State.UNKNOWN, "an older vc-manager did not record where its meta cluster is; name it with --context"
    files = [Path(path) for path in origin.kubeconfig]
    if files and not any(path.exists() for path in files):
        return await _without_kubeconfig(origin, deadline)
    return await _with_kubeconfig(meta, files, origin, deadline)


async def _with_kubeconfig(meta: str, files: list[Path], origin: Origin, deadline: float) -> tuple[State, str]:
    try:
        credentials = kubeconfig.from_files(*files, context=origin.context)
        server = (await credentials.access()).server
    except errors.BadCredentials as error:
        return State.UNREACHABLE, str(error)
    if server != origin.server:
        return State.UNREACHABLE, f"its meta cluster was at {origin.server}, and its kubeconfig now leads to {server}"
    try:
        async with Client(credentials, user_agent=AGENT, deadline=deadline) as client:
            uid = (await client.get(resources.NAMESPACES, "kube-system")).uid
    except errors.ApiError as error:
        return State.UNREACHABLE, str(error)
    if uid == meta:
        return State.SERVED, "its meta cluster answers"
    return State.GONE, f"another cluster is at {origin.server}"


async def _without_kubeconfig(origin: Origin, deadline: float) -> tuple[State, str]:
    named = ", ".join(origin.kubeconfig)
    parts = urlsplit(origin.server)
    if parts.hostname not in LOCAL or parts.port is None:
        return (
            State.UNREACHABLE,
            f"its kubeconfig {named} does not exist any more; name its meta cluster with --context",
        )
    try:
        async with asyncio.timeout(deadline):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.close()
    except ConnectionRefusedError:
        return State.GONE, f"it was on this machine, at {origin.server}; nothing listens there, and {named} was deleted"
    except (OSError, TimeoutError):
        return State.UNREACHABLE, f"{origin.server} does not answer"
    return State.UNREACHABLE, f"{named} was deleted, but {origin.server} still answers; name it with --context"
