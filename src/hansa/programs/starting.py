"""Starts one server process with a given command line, and waits until it serves.

Used for each component of a control plane. Restarting a component that ends later is left to callers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hansa.programs import process
from hansa.programs.process import DEFAULT_OPTIONS, Identity, Process, ProcessOptions
from hansa.runtime.errors import HansaError

START_SECONDS = 120.0
# Servers do not announce that they serve, so they are probed; a start takes two to four seconds.
PROBE_SECONDS = 0.05
LONGEST_TASK_SECONDS = 3600.0
TAIL_BYTES = 64 << 10
# Prefixes of error lines in the logs of Go programs: klog and zap errors, panics, fatal errors, wrong flags.
ERROR_PREFIXES = (
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
    """A component ended during its start, or did not serve before the deadline."""


class PortTaken(FailedToStart):
    """A component could not listen on its port because another program does."""


async def ensure(
    identity: Identity,
    argv: Sequence[str],
    *,
    current: Process | None,
    log: Path,
    netns: str | None = None,
    options: ProcessOptions = DEFAULT_OPTIONS,
) -> Process:
    """Start the process unless it runs with this command line; one with another command line is stopped first."""
    if current is not None:
        if current.argv == tuple(argv):
            return current
        await current.stop()
    return process.spawn(identity, argv, log=log, netns=netns, options=options)


async def wait_until_serving(started: Process, probe: Callable[[], Awaitable[bool]], *, log: Path) -> None:
    """Wait until the probe succeeds; raise with the reason from the log if the process ends first."""
    name = _name(started.identity)
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await probe():
                if await started.ended(PROBE_SECONDS):
                    raise _start_failure(name, log)
    except TimeoutError:
        raise FailedToStart(f"{name} did not become healthy within {START_SECONDS:.0f} s; see its log {log}") from None


async def while_running(started: Process, task: Awaitable[T], *, log: Path) -> T:
    """Run the task to its end; raise with the reason from the log if the process ends first."""
    job = asyncio.ensure_future(task)
    end = asyncio.ensure_future(started.ended(LONGEST_TASK_SECONDS))
    try:
        await asyncio.wait([job, end], return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise _start_failure(_name(started.identity), log)
        return job.result()
    finally:
        job.cancel()
        end.cancel()
        await asyncio.gather(job, end, return_exceptions=True)


def _start_failure(name: str, log: Path) -> FailedToStart:
    reason = _last_error(log)
    kind = PortTaken if "address already in use" in reason else FailedToStart
    return kind(f"{name} ended during its start: {reason}; see its log {log}")


def _last_error(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(ERROR_PREFIXES)]
    return (errors or lines or ["no output"])[-1][:500]


def _name(identity: Identity) -> str:
    return f"{identity.component} of cluster {identity.cluster}" if identity.cluster else identity.component
