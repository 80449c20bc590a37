"""Long-running processes: start them so that they outlive the command, find them again, signal and end them.

Processes are found by a mark in their environment, so no pid file can be stale after a crash, and signalled through a
pidfd, so that no later process with the same pid gets the signal. Health checks and restarts are left to callers.
"""

import asyncio
import contextlib
import ctypes
import functools
import logging
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "HANSA_LOCAL_PROCESS"
log = logging.getLogger(__name__)
PR_SET_TIMERSLACK = 29
# Nanoseconds by which the kernel may delay a timer. The runtime of a busy Go program polls up to 50,000 times a second,
# which is half of what an idle control plane costs; with this slack it polls 200 times.
TIMER_SLACK = 5_000_000


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Identifies a process: its state folder, its cluster ("" if clusters share it) and its component name."""

    state: Path
    cluster: str
    component: str

    def mark(self) -> str:
        """The value of the environment variable that marks the process."""
        return f"{self.state}\t{self.cluster}\t{self.component}"


@dataclass(frozen=True, slots=True)
class Process:
    """A running process, as read from /proc."""

    identity: Identity
    pid: int
    start_time: int  # in clock ticks since boot: distinguishes a process from a later one with the same pid
    argv: tuple[str, ...]

    def signal(self, number: int) -> None:
        """Send a signal to this process only; does nothing if it has ended."""
        with _pidfd(self) as fd:
            if fd is not None:
                signal.pidfd_send_signal(fd, number)

    async def ended(self, deadline: float) -> bool:
        """Wait until the process has ended; False if it still runs after `deadline` seconds."""
        with _pidfd(self) as fd:
            return fd is None or await _readable(fd, deadline)

    async def stop(self, grace: float = 10.0) -> None:
        """End the process with SIGTERM, and with SIGKILL after the grace period in seconds."""
        self.signal(signal.SIGTERM)
        # A stopped process (SIGSTOP) handles SIGTERM only after SIGCONT.
        self.signal(signal.SIGCONT)
        if not await self.ended(grace):
            self.signal(signal.SIGKILL)
            await self.ended(grace)


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The environment and the CPU scheduling of a process."""

    defaults: Mapping[str, str] = field(default_factory=dict)  # environment variables, unless ours has them
    is_batch: bool = False  # SCHED_BATCH: it does not preempt others when it becomes runnable
    nice: int = 0  # 0 to 19; 0 leaves the niceness as inherited


DEFAULT_OPTIONS = ProcessOptions()


def spawn(
    identity: Identity,
    argv: Sequence[str],
    *,
    log: Path,
    netns: str | None = None,
    options: ProcessOptions = DEFAULT_OPTIONS,
) -> Process:
    """Start a process that outlives this one; its output is appended to the log file."""
    enter = ("nsenter", f"--net=/run/netns/{netns}", "--") if netns else ()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out, _inherited(options):
        child = subprocess.Popen(
            [*enter, *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            env={**options.defaults, **os.environ, MARK: identity.mark()},
        )
    _reap_when_ended(child)
    if options.nice:
        _set_nice(child.pid, options.nice)
    return Process(identity, child.pid, _start_time(child.pid) or 0, tuple(argv))


def running(state: Path) -> dict[tuple[str, str], Process]:
    """All processes of a state folder by cluster and component."""
    return {(p.identity.cluster, p.identity.component): p for p in _marked_processes() if p.identity.state == state}


@contextlib.contextmanager
def _inherited(options: ProcessOptions) -> Iterator[None]:
    """Set what a child process inherits from the thread that forks it, and restore it afterwards."""
    set_slack = functools.partial(ctypes.CDLL(None).prctl, PR_SET_TIMERSLACK)
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    set_slack(ctypes.c_ulong(TIMER_SLACK))
    if options.is_batch:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        set_slack(ctypes.c_ulong(0))  # 0 restores the thread's default


def _set_nice(pid: int, nice: int) -> None:
    """Set the niceness of a new session: of its threads and, where the kernel has one, of its autogroup."""
    try:
        os.setpriority(os.PRIO_PGRP, pid, nice)
        with contextlib.suppress(FileNotFoundError):
            Path(f"/proc/{pid}/autogroup").write_text(str(nice))
    except ProcessLookupError:
        return  # it ended already; its start fails elsewhere
    except OSError as error:
        # The kernel accepts an unprivileged write to autogroup only every 100 ms.
        log.warning("niceness not set", extra={"pid": pid, "nice": nice, "error": error.strerror})


def _marked_processes() -> Iterator[Process]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - making a Path for each entry would take most of the time
        if name.isdigit() and (process := _read(int(name))) is not None:
            yield process


def _read(pid: int) -> Process | None:
    """Read one process; None if it has ended, is not readable, or is a child that inherited the mark."""
    with contextlib.suppress(OSError, ValueError):
        if os.getsid(pid) != pid or (started := _start_time(pid)) is None:
            return None
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(MARK.encode() + b"="):
                state, cluster, component = os.fsdecode(variable).partition("=")[2].split("\t")
                argv = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).rstrip("\0").split("\0")
                return Process(Identity(Path(state), cluster, component), pid, started, tuple(argv))
    return None


def _start_time(pid: int) -> int | None:
    """The start time of a process in clock ticks since boot; None if it has ended or is a zombie."""
    try:
        # The program name in parentheses may contain spaces and ")", so fields are counted after the last one.
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in (b"Z", b"X") else int(fields[18])


@contextlib.contextmanager
def _pidfd(process: Process) -> Iterator[int | None]:
    """A pidfd of the process; None if it has ended. The start time is compared after the pidfd pins the pid."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd if _start_time(process.pid) == process.start_time else None
    finally:
        os.close(fd)


async def _readable(fd: int, deadline: float) -> bool:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        async with asyncio.timeout(deadline):
            await ready.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(fd)
    return True


def _reap_when_ended(child: subprocess.Popen[bytes]) -> None:
    """Wait for the child when its pidfd becomes readable, so that it does not stay a zombie of a long-lived caller."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    fd = os.pidfd_open(child.pid)

    def reap() -> None:
        loop.remove_reader(fd)
        os.close(fd)
        child.wait()

    loop.add_reader(fd, reap)
