"""How the making of a binary is told: values for a program, and a renderer that writes them as one line per binary."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from hansa.local.binaries.binary import Binary

TICK_SECONDS = 1.0


class Phase(StrEnum):
    """What is being done about a binary."""

    WAITING = "waiting for another process"
    DOWNLOADING = "downloading from"
    INSTALLING = "installing"
    BUILDING = "building with"
    READY = "ready"
    FAILED = "failed"

    @property
    def is_last(self) -> bool:
        """Whether nothing follows."""
        return self in {Phase.READY, Phase.FAILED}


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the making of a binary stands; `elapsed` is in seconds since it began."""

    binary: Binary
    phase: Phase
    detail: str
    elapsed: float


Listener = Callable[[Progress], None]


@dataclass(slots=True)
class Report:
    """Tells a listener of one binary: at each change of phase and every second between."""

    binary: Binary
    listener: Listener
    started: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    phase: Phase | None = None
    detail: str = ""

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Say what is being done from now on."""
        self.phase, self.detail = phase, detail
        self.tell()

    def waits(self) -> None:
        """Say that another process is at it."""
        self.enter(Phase.WAITING)

    def tell(self) -> None:
        """Say it again, with the time that has passed."""
        if self.phase is not None:
            elapsed = asyncio.get_running_loop().time() - self.started
            self.listener(Progress(self.binary, self.phase, self.detail, elapsed))


@contextlib.asynccontextmanager
async def reporting(binary: Binary, listener: Listener) -> AsyncIterator[Report]:
    """A report that goes on until the block ends, and says how it ended."""
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
        report.tell()


class Renderer:
    """Writes progress to a stream: a terminal's line is updated in place, a log gets the beginnings and the ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream.isatty()
        self._told: tuple[str, Phase] | None = None

    def __call__(self, step: Progress) -> None:
        """Write one step."""
        if self._in_place:
            width = shutil.get_terminal_size().columns - 1  # a line that wraps could not be taken back
            self._stream.write(f"\r\x1b[K{line(step)[:width]}" + "\n" * step.phase.is_last)
        elif self._told != (step.binary.name, step.phase):
            self._stream.write(f"{line(step)}\n")
        self._told = (step.binary.name, step.phase)
        self._stream.flush()


def line(step: Progress) -> str:
    """The step as a line for a person."""
    doing = f"{step.phase} {step.detail}".rstrip()
    joint = "after" if step.phase.is_last else "…"
    return f"{step.binary.label}  {doing} {joint} {step.elapsed:.0f} s"
