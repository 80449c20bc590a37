"""Child processes of tests: kubectl, and `hansa` commands that run until the test ends them."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml


def inside(netns: str) -> tuple[str, ...]:
    """The beginning of a command line that runs in a network namespace; empty for that of the tests."""
    return ("nsenter", f"--net=/run/netns/{netns}") if netns else ()


class Refused(AssertionError):
    """The program ended with an error; the message is its output."""


class Kubectl:
    """kubectl for one cluster."""

    def __init__(self, binary: Path, kubeconfig: Path, *, netns: str = "") -> None:
        self.argv = (*inside(netns), str(binary), "--kubeconfig", str(kubeconfig))

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run it to its end; its stdout."""
        code, out, err = await self.run(*arguments, stdin=stdin.encode())
        if code:
            raise Refused(f"kubectl {' '.join(arguments)}: {err.decode().strip()}")
        return out.decode()

    async def run(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        """Run it to its end, whatever that is: its exit code, stdout and stderr."""
        process = await self.start(*arguments)
        out, err = await process.communicate(stdin)
        return process.returncode or 0, out, err

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start it; the caller ends it."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*self.argv, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)

    async def get(self, *arguments: str) -> Any:
        """The parsed output of `kubectl get -o json`."""
        return json.loads(await self("get", *arguments, "-o", "json"))

    async def apply(self, *objects: dict[str, Any], verb: str = "apply") -> None:
        """Create or change objects."""
        await self(verb, "-f", "-", stdin=yaml.safe_dump_all(objects))


class Hansa:
    """A running `hansa` command."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self.log = process, log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.returncode is not None

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self, *, within: float = 60.0) -> int:
        """Wait for its end; its exit code."""
        async with asyncio.timeout(within):
            return await self._process.wait()

    async def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        return await self.ended()


@contextlib.asynccontextmanager
async def hansa(*arguments: str, log: Path, env: dict[str, str] | None = None, netns: str = "") -> AsyncIterator[Hansa]:
    """Run a command for as long as the block lasts; its log is printed if the block fails."""
    program = await start(*arguments, log=log, env=env, netns=netns)
    try:
        yield program
    except BaseException:
        print(f"--- hansa {' '.join(arguments)}\n{log.read_text()[-20000:]}", file=sys.stderr)  # noqa: T201
        raise
    finally:
        await program.stop()


def as_in_the_foreground() -> None:
    """Reset SIGINT to its default action in a child process, so that Ctrl-C ends it; used as `preexec_fn`.

    A shell without job control starts background commands with SIGINT ignored. Children of pytest inherit that, and
    programs do not change an inherited "ignored".
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def start(*arguments: str, log: Path, env: dict[str, str] | None = None, netns: str = "") -> Hansa:
    """Start a `hansa` command; its output is appended to the log file."""
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(
            *inside(netns),
            sys.executable,
            "-m",
            "hansa.cli.main",
            *arguments,
            stdout=out,
            stderr=out,
            env={**os.environ, **(env or {})},
            preexec_fn=as_in_the_foreground,
            start_new_session=True,  # as a service; the scheduler of the kernel shares cores between sessions
        )
    return Hansa(process, log)
