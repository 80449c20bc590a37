"""Runs a program to completion, with a deadline, and returns its exit code and output.

Used for compilers, pip and version queries. Long-running programs are `process`.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Sets PR_SET_PDEATHSIG, so that kill -9 of the parent leaves no compiler running, then executes the program.
BOUND = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code and the output of a program."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        """The last non-empty line of output, where programs print the reason of a failure."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit code {self.code}"


def bound_to_parent(command: Sequence[str]) -> list[str]:
    """The command, wrapped so that the kernel ends it together with this process (Linux only)."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-I", "-S", "-c", BOUND, str(os.getpid()), *command]


async def run(
    command: Sequence[str], *, deadline: float, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Result:
    """Run the program to its end. On cancellation or after `deadline` seconds its process group is killed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=cwd,
        env=env,
        start_new_session=True,  # Ctrl-C must reach this process only, which then ends the program
    )
    try:
        async with asyncio.timeout(deadline):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Result(await process.wait(), output.decode(errors="replace"))
