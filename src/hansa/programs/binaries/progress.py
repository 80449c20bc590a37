"""Progress of getting binaries: values for callers, and a renderer that prints one line for each binary.

Used by commands that may download or build for minutes.
"""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from hansa.programs.binaries.binary import Binary

TICK_SECONDS = 1.0


class Phase(StrEnum):
    """What is being done to get a binary."""

    WAITING = "waiting for another process"
    DOWNLOADING = "downloading from"
    INSTALLING = "installing"
    BUILDING = "building with"
    READY = "ready"
    FAILED = "failed"

    @property
    def is_last(self) -> bool:
        """Whether this phase is final."""
        return self in {Phase.READY, Phase.FAILED}


@dataclass(frozen=True, slots=True)
class Progress:
    """The current phase of getting a binary; `elapsed` is in seconds since it began."""

    binary: Binary
    phase: Phase
    detail: str
    elapsed: float


Listener = Callable[[Progress], None]


@dataclass(slots=True)
class Report:
    """Reports the progress of one binary to a listener: at each change of phase and every second between."""

    binary: Binary
    listener: Listener
    started: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    phase: Phase | None = None
    detail: str = ""

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Enter a phase and report it."""
        self.phase, self.detail = phase, detail
        self.notify()

    def waiting(self) -> None:
        """Enter the phase of waiting for another process."""
        self.enter(Phase.WAITING)

    def notify(self) -> None:
        """Report the current phase with the elapsed time."""
        if self.phase is not None:
            elapsed = asyncio.get_running_loop().time() - self.started
            self.listener(Progress(self.binary, self.phase, self.detail, elapsed))


@contextlib.asynccontextmanager
async def reporting(binary: Binary, listener: Listener) -> AsyncIterator[Report]:
    """Report until the block ends, with READY or FAILED as the last phase."""
    report = Report(binary, listener)
    ticking = asyncio.create_task(_tick(report))
    try:
        yield report
    except BaseException:
        report.enter(Phase.FAILED)
        raise
    else:
        report.enter(Phase.READY)
    finally:
        ticking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ticking


async def _tick(report: Report) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        report.notify()


class Renderer:
    """Prints progress to a stream: in place on a terminal, otherwise one line for each change of phase."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._last: tuple[str, Phase] | None = None

    def __call__(self, step: Progress) -> None:
        """Print one step."""
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1  # a wrapped line could not be overwritten
            self._stream.write(f"\r\x1b[K{line(step)[:width]}" + "\n" * step.phase.is_last)
        elif self._last != (step.binary.name, step.phase):
            self._stream.write(f"{line(step)}\n")
        self._last = (step.binary.name, step.phase)
        self._stream.flush()


def line(step: Progress) -> str:
    """The step as a line of text."""
    action = f"{step.phase} {step.detail}".rstrip()
    joint = "after" if step.phase.is_last else "…"
    return f"{step.binary.label}  {action} {joint} {step.elapsed:.0f} s"
