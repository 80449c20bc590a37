"""Brings one process to the state that its command line describes, and waits until it serves."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hansa.local import process
from hansa.local.process import PLAIN, Identity, Manner, Process
from hansa.runtime.errors import HansaError

START_SECONDS = 120.0
# No server tells when it begins to serve, so it is asked until it does; a start takes two to four seconds.
PROBE_SECONDS = 0.05
LONGEST_TASK_SECONDS = 3600.0
TAIL_BYTES = 64 << 10
# Go programs print errors as lines that begin so, and panics, fatal errors and wrong flags otherwise.
COMPLAINTS = (
    "E",
    "F",
    "Error",
    "error",
    "panic",
    "fatal",
    "unknown flag",
    "invalid",
    '{"level":"fatal',
    '{"level":"error',
)


T = TypeVar("T")


class FailedToStart(HansaError):
    """A component ended, or did not serve in time."""


class PortTaken(FailedToStart):
    """It could not listen, because something else does."""


async def ensure(
    identity: Identity,
    argv: Sequence[str],
    *,
    current: Process | None,
    log: Path,
    netns: str | None = None,
    manner: Manner = PLAIN,
) -> Process:
    """Start the process; one that runs with the same command line stays, one with another goes first."""
    if current is not None:
        if current.argv == tuple(argv):
            return current
        await current.stop()
    return process.spawn(identity, argv, log=log, netns=netns, manner=manner)


async def serving(started: Process, probe: Callable[[], Awaitable[bool]], *, log: Path) -> None:
    """Wait until the probe succeeds; if the process ends first, say why it did."""
    name = _name(started.identity)
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await probe():
                if await started.ended(PROBE_SECONDS):
                    raise _why_ended(name, log)
    except TimeoutError:
        raise FailedToStart(f"{name} did not serve within {START_SECONDS:.0f} s; its log is {log}") from None


async def outlives(started: Process, task: Awaitable[T], *, log: Path) -> T:
    """Wait for the task, but not if the process ends before: then say why it did."""
    job = asyncio.ensure_future(task)
    death = asyncio.ensure_future(started.ended(LONGEST_TASK_SECONDS))
    try:
        await asyncio.wait([job, death], return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise _why_ended(_name(started.identity), log)
        return job.result()
    finally:
        job.cancel()
        death.cancel()
        await asyncio.gather(job, death, return_exceptions=True)


def _why_ended(name: str, log: Path) -> FailedToStart:
    complaint = _last_complaint(log)
    kind = PortTaken if "address already in use" in complaint else FailedToStart
    return kind(f"{name} ended at its start: {complaint}; its log is {log}")


def _last_complaint(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    complaints = [line for line in lines if line.startswith(COMPLAINTS)]
    return (complaints or lines or ["it printed nothing"])[-1][:500]


def _name(identity: Identity) -> str:
    return f"{identity.component} of cluster {identity.cluster}" if identity.cluster else identity.component
