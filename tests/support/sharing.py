"""A program that shares a thousand keys with others of its group, and tests of it: which keys each may write, and when.

Each line of its output is `time keys`, by the monotonic clock that all processes share; the keys are a number with a
bit for each, as they were at that time or at most EXACT seconds later. The program runs until SIGTERM.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from hansa.control import manager
from hansa.control.lease_timing import LeaseTiming
from hansa.control.sharding.leases import Group, Keys
from hansa.control.sharding.membership import Membership
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from machinery import Machine

TENANTS = [f"default-{number:05x}-tenant-{number}" for number in range(1000)]
EVERY = 1 << len(TENANTS)
STEP = 0.05  # seconds between two lines, by default
EXACT = 0.02
GAP = 1.0  # seconds without a line: the process did not run, and says nothing about the time in between
KEYS = Keys("hansa.dev/shares", "hansa.dev/claims", "hansa.dev/leaves")


class Replica:
    """A process of this program, with its output."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name, self.process = name, process
        self.lines: list[tuple[float, int]] = []
        self._reading = asyncio.create_task(self._read())

    @property
    def keys(self) -> int:
        """The keys that it may write, by its last line."""
        return self.lines[-1][1] if self.lines else 0

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            when, keys = line.decode().split()
            self.lines.append((float(when), int(keys, 16)))

    def signal(self, number: int) -> float:
        """Send a signal; the time."""
        self.process.send_signal(number)
        return time.monotonic()

    async def end(self, number: int) -> float:
        """End it with a signal; the time of the signal."""
        when = self.signal(number)
        async with asyncio.timeout(60):
            await self.process.wait()
            await self._reading
        return when

    def spans(self, key: int) -> list[tuple[float, float]]:
        """When it may write a key, from the first to the last line of each time without a gap."""
        found: list[tuple[float, float]] = []
        last, was_set = -GAP, False
        for when, keys in self.lines:
            is_set = bool(keys >> key & 1)
            if is_set and was_set and when - last < GAP:
                found[-1] = found[-1][0], when
            elif is_set:
                found.append((when, when))
            last, was_set = when, is_set
        return found


class Replicas:
    """Replicas of one group."""

    def __init__(self, config: Path, namespace: str, timing: LeaseTiming, step: float) -> None:
        self._config, self._namespace, self._timing, self._step = config, namespace, timing, step
        self.all: list[Replica] = []
        self._numbers = itertools.count()

    async def start(self) -> Replica:
        """Start another one."""
        name, timing = f"replica-{next(self._numbers)}", self._timing
        numbers = (self._step, timing.lease, timing.renew, timing.retry)
        settings = [str(self._config), self._namespace, name, *map(str, numbers)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, *settings, stdout=asyncio.subprocess.PIPE, limit=2**20
        )
        self.all.append(Replica(name, process))
        return self.all[-1]

    def served(self, *, without: Replica | None = None) -> bool:
        """Whether each key may be written by one of the replicas."""
        found = 0
        for one in self.all:
            if one is not without and one.process.returncode is None:
                found |= one.keys
        return found == EVERY - 1

    async def wait(self, is_done: Callable[[], bool], *, within: float) -> float:
        """Wait for a condition; the time."""
        async with asyncio.timeout(within):
            while not is_done():
                await asyncio.sleep(STEP / 2)
        return time.monotonic()

    def doubled(self) -> list[str]:
        """The keys that two replicas could write at one time."""
        found = []
        for key in range(len(TENANTS)):
            spans = sorted((*span, one.name) for one in self.all for span in one.spans(key))
            for (_, end, a), (begin, _, b) in itertools.pairwise(spans):
                if begin + EXACT <= end and a != b:
                    found.append(f"key {key}: {a} until {end:.3f}, {b} from {begin:.3f}")
        return found


@contextlib.asynccontextmanager
async def replicas(config: Path, namespace: str, timing: LeaseTiming, *, step: float = STEP) -> AsyncIterator[Replicas]:
    """Replicas, which end with the block."""
    made = Replicas(config, namespace, timing, step)
    try:
        yield made
    finally:
        for one in made.all:
            if one.process.returncode is None:
                one.signal(signal.SIGCONT)
                await one.end(signal.SIGKILL)


async def main(config: str, namespace: str, name: str, step: str, *timing: str) -> None:
    """Take part until SIGTERM."""
    async with Client(kubeconfig.from_files(config), user_agent=name) as client, Machine(os.getpid()) as machine:
        member = Membership(
            Group("test", namespace, KEYS),
            identity=name,
            client=client,
            informers=machine.informers("c", client),
            timing=LeaseTiming(*map(float, timing)),
            **machine.injected(),
        )

        async def write() -> None:
            while True:
                now = time.monotonic()
                keys = sum(1 << number for number, key in enumerate(TENANTS) if member.may_write(key))
                if time.monotonic() - now < EXACT:  # else it did not run for a while
                    print(f"{now:.4f} {keys:x}", flush=True)  # noqa: T201
                await asyncio.sleep(float(step))

        program = manager.Manager(grace=2, **machine.injected())
        program.serve(manager.Component("writing", write))
        program.work(manager.Component("leaving", member.left, drain=member.leave))
        await program.run(member.lead)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
