"""Runs `hansa` commands to their end, and keeps what they print."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

SECONDS = 120.0  # a busy machine is slow


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its standard output, which is JSON."""
        return json.loads(self.out)


async def hansa(*arguments: str, module: str = "hansa.cli.main", stdin: str = "", **env: str) -> Ran:
    """Run a command to its end."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", module, *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **env}
    )
    async with asyncio.timeout(SECONDS):
        out, err = await process.communicate(stdin.encode())
    return Ran(process.returncode or 0, out.decode(), err.decode())
