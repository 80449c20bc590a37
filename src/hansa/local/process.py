"""Processes that outlive the command that started them.

Whose a process is stands in its own environment, so the kernel's process table is the only record: there is no pid file
that a crash could leave wrong. A signal goes through a pidfd, so it can never reach a stranger that took over a number.
"""

import asyncio
import contextlib
import ctypes
import functools
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MARK = "HANSA_LOCAL_PROCESS"
MOST_NICE = 19
PR_SET_TIMERSLACK = 29
# Nanoseconds that a timer may come late. A Go program looks after itself up to 50,000 times a second while it does
# anything at all, which is half of what an idle control plane costs; with this it does so 200 times.
TIMER_SLACK = 5_000_000


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """Names a process: the state folder that it belongs to, the cluster ("" if shared), and what it is there."""

    state: Path
    cluster: str
    component: str

    def mark(self) -> str:
        """What the environment of the process says."""
        return f"{self.state}\t{self.cluster}\t{self.component}"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that is there, as the kernel shows it."""

    identity: Identity
    pid: int
    born: int  # in clock ticks since the machine's start: tells a process from a later one with the same number
    argv: tuple[str, ...]

    def signal(self, number: int) -> None:
        """Send a signal, to this process only; nothing happens if it is gone."""
        with _pidfd(self) as fd:
            if fd is not None:
                signal.pidfd_send_signal(fd, number)

    def be_nice(self, steps: int) -> bool:
        """Leave cores to others who want them: each step takes a fifth of its weight. False if it may not, or not now.

        The kernel weighs either a session as a whole, or each thread. It lets only root take a step back.
        """
        with _pidfd(self) as fd:
            if fd is None:
                return True
            try:
                os.setpriority(os.PRIO_PGRP, self.pid, steps)
                with contextlib.suppress(FileNotFoundError):
                    Path(f"/proc/{self.pid}/autogroup").write_text(str(steps))
            except OSError:
                return False
        return True

    async def ended(self, deadline: float) -> bool:
        """Wait until it is gone; False if it is still there after that many seconds."""
        with _pidfd(self) as fd:
            return fd is None or await _readable(fd, deadline)

    async def stop(self, grace: float = 10.0) -> None:
        """End it: politely, then after the grace period by force."""
        self.signal(signal.SIGTERM)
        # A stopped process (SIGSTOP) keeps a SIGTERM for later; let it go on, so that it can end.
        self.signal(signal.SIGCONT)
        if not await self.ended(grace):
            self.signal(signal.SIGKILL)
            await self.ended(grace)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a process runs beside others; `defaults` are of its environment where ours doesn't say otherwise.

    One that is patient pushes nobody from a core when it wakes up.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    is_patient: bool = False


PLAIN = Manner()


def spawn(
    identity: Identity,
    argv: Sequence[str],
    *,
    log: Path,
    netns: str | None = None,
    manner: Manner = PLAIN,
) -> Process:
    """Start a process that stays when we end; what it prints goes to the end of the log file."""
    enter = ("nsenter", f"--net=/run/netns/{netns}", "--") if netns else ()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out, _inherited(manner):
        child = subprocess.Popen(
            [*enter, *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd="/",
            env={**manner.defaults, **os.environ, MARK: identity.mark()},
        )
    _reap_when_ended(child)
    return Process(identity, child.pid, _born(child.pid) or 0, tuple(argv))


def running(state: Path) -> dict[tuple[str, str], Process]:
    """All processes of a state folder by cluster and component."""
    return {(p.identity.cluster, p.identity.component): p for p in _marked_processes() if p.identity.state == state}


@contextlib.contextmanager
def _inherited(manner: Manner) -> Iterator[None]:
    """What children have from the thread that makes them, for as long as the caller stays inside."""
    set_slack = functools.partial(ctypes.CDLL(None).prctl, PR_SET_TIMERSLACK)
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    set_slack(ctypes.c_ulong(TIMER_SLACK))
    if manner.is_patient:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)
        set_slack(ctypes.c_ulong(0))  # as it was at first


def _marked_processes() -> Iterator[Process]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - a path for each of them would take most of the time
        if name.isdigit() and (process := _look_up(int(name))) is not None:
            yield process


def _look_up(pid: int) -> Process | None:
    """Read one process; None if it is gone, not ours to read, or only a child that inherited the mark."""
    with contextlib.suppress(OSError, ValueError):
        if os.getsid(pid) != pid or (born := _born(pid)) is None:
            return None
        for variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if variable.startswith(MARK.encode() + b"="):
                state, cluster, component = os.fsdecode(variable).partition("=")[2].split("\t")
                argv = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).rstrip("\0").split("\0")
                return Process(Identity(Path(state), cluster, component), pid, born, tuple(argv))
    return None


def _born(pid: int) -> int | None:
    """When a process started; None if it is gone, or a zombie that only waits for its parent."""
    try:
        # The name in parentheses may hold anything, so fields are counted from the last one.
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in (b"Z", b"X") else int(fields[18])


@contextlib.contextmanager
def _pidfd(process: Process) -> Iterator[int | None]:
    """A handle on the process; None if it is gone. The number is checked after it was pinned, never before."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield fd if _born(process.pid) == process.born else None
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
    """A child of a long-lived caller must not stay a zombie: it is waited for when its pidfd becomes readable."""
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
