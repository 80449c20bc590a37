"""Programs that do a piece of work for us and end: their output, a deadline, and an end together with ours."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Asks the kernel to end this process with its parent, so that kill -9 leaves no compiler, then becomes the program.
BOUND = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended and what it said."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        """The last line that says something, which is where programs put the reason."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}"


def bound_to_us(command: Sequence[str]) -> list[str]:
    """The command, started so that it dies with this process. Only Linux can do that."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", BOUND, str(os.getpid()), *command]


async def run(
    command: Sequence[str], *, deadline: float, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Ended:
    """Run the program to its end. When we are cancelled or the deadline passes, its whole process group is ended."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
        env=env,
        start_new_session=True,  # Ctrl-C reaches us alone, and we decide
    )
    try:
        async with asyncio.timeout(deadline):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Ended(await process.wait(), output.decode(errors="replace"))
