"""Runs the commands of a demo in a temporary folder with its own clusters and programs, and removes all of it.

Each command is printed exactly as a shell runs it.
"""

import asyncio
import contextlib
import os
import signal
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from hansa.cli.demo import leftovers
from hansa.cli.demo.leftovers import STATE
from hansa.programs import binaries, owned_folders
from hansa.runtime.errors import HansaError

CONFIG = "kubeconfig"
END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WAIT_SECONDS = 120.0  # for a command to succeed; generous, for a busy machine
POLL_SECONDS = 0.2
GRACE_SECONDS = 10.0  # after SIGTERM
LOG_TAIL = 2000  # characters of a program's log in an error message


class DemoFailed(HansaError):
    """A command of the demo failed."""


@dataclass(slots=True)
class Stage:
    """A running demo. Commands run in its folder, with kubectl, `kubectl vc` and hansa on the PATH."""

    folder: Path
    environment: dict[str, str]
    _programs: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    def explain(self, text: str) -> None:
        """Print a comment about the next commands."""
        bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
        _print(f"\n{bold}# {text}{plain}")

    async def run(self, command: str) -> None:
        """Print a command and its output."""
        _print(f"$ {command}")
        running = await self._shell(command)
        if code := await _ended(running):
            raise DemoFailed(f'"{command}" failed with exit code {code}')

    async def write(self, name: str, text: str) -> None:
        """Write a file, and print it."""
        (self.folder / name).write_text(text)
        await self.run(f"cat {name}")

    async def start(self, name: str, command: str) -> None:
        """Print and start a command that runs until the end of the demo; its output goes to a log file."""
        _print(f"$ {command} &")
        with self._log(name).open("wb") as log:
            self._programs[name] = await self._shell(command, log.fileno())

    async def until(self, command: str, *, shows: str = "") -> str:
        """Repeat a command until it succeeds and its output contains `shows`, then print it and return the output."""
        output, deadline = "", asyncio.get_running_loop().time() + WAIT_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            self._check_programs()
            code, output = await self._capture(command)
            if code == 0 and shows in output:
                _print(f"$ {command}\n{output.rstrip()}")
                return output
            await asyncio.sleep(POLL_SECONDS)
        raise DemoFailed(f'"{command}" did not succeed within {WAIT_SECONDS:g} s; its output: {output.strip()}')

    async def output(self, command: str) -> str:
        """The output of a command that is not printed."""
        code, output = await self._capture(command)
        if code:
            raise DemoFailed(f'"{command}" failed with exit code {code}; its output: {output.strip()}')
        return output.strip()

    async def keep(self) -> None:
        """Print how to use the clusters from another terminal, and wait for a signal."""
        self.explain("Everything runs until you press Ctrl-C. In another terminal:")
        for name in ("PATH", "KUBECONFIG", "HANSA_STATE"):
            _print(f"export {name}={self.environment[name]}")
        _print(f"cd {self.folder}")
        ended = asyncio.Event()
        for number in END_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await ended.wait()

    async def clear(self) -> None:
        """Stop all programs and clusters, and remove the folder, in any state of the demo."""
        for number in END_SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)  # a second signal must not interrupt it
        self.explain("Stopping and removing everything")
        await asyncio.gather(*(_stop(program) for program in self._programs.values()))
        await leftovers.remove(self.folder)

    async def _capture(self, command: str) -> tuple[int, str]:
        with tempfile.TemporaryFile(dir=self.folder) as output:
            code = await _ended(await self._shell(command, output.fileno()))
            output.seek(0)
            return code, output.read().decode(errors="replace")

    async def _shell(self, command: str, out: int | None = None) -> asyncio.subprocess.Process:
        # In a new session, so that Ctrl-C signals only this program, which stops the command.
        return await asyncio.create_subprocess_exec(
            "bash",
            *("-c", command),
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )

    def _check_programs(self) -> None:
        for name, program in self._programs.items():
            if program.returncode is not None:
                tail = self._log(name).read_text(errors="replace")[-LOG_TAIL:]
                raise DemoFailed(f"{name} failed with exit code {program.returncode}; the end of its log: {tail}")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """A stage, which is cleared at the end of the block. What killed demos left is removed first."""
    for folder in await leftovers.sweep():
        _print(f"removed what a demo left that was killed: {folder}")
    kubectl = (await binaries.ensure(["kubectl"], progress=binaries.Renderer(sys.stderr)))["kubectl"]
    with owned_folders.create(leftovers.PREFIX) as folder:
        programs = (sysconfig.get_path("scripts"), str(kubectl.parent), os.environ.get("PATH", os.defpath))
        variables = {
            "PATH": os.pathsep.join(programs),
            "KUBECONFIG": str(folder / CONFIG),
            "HANSA_STATE": str(folder / STATE),
            leftovers.MARK: str(folder),
        }
        async with _cleared(Stage(folder, {**os.environ, **variables})) as stage:
            yield stage


@contextlib.asynccontextmanager
async def _cleared(stage: Stage) -> AsyncIterator[Stage]:
    """Clear the stage at the end, also after a signal."""
    loop, interrupt = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    for number in END_SIGNALS[1:]:
        loop.add_signal_handler(number, signal.raise_signal, signal.SIGINT)
    try:
        yield stage
    finally:
        await stage.clear()
        for number in END_SIGNALS:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, interrupt)


async def _ended(running: asyncio.subprocess.Process) -> int:
    try:
        return await running.wait()
    finally:
        if running.returncode is None:
            await _stop(running)


async def _stop(running: asyncio.subprocess.Process) -> None:
    """Stop a command and its children: SIGTERM, and SIGKILL after GRACE_SECONDS."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.wait(), GRACE_SECONDS)
            return


def _print(text: str) -> None:
    print(text, flush=True)  # commands write to the same file descriptor
