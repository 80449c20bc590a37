"""Where a demo is shown: a folder with clusters and programs of its own, of which nothing is left in the end.

Each command is printed as a person would type it, and a shell runs just that.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from hansa.local import Fleet, State
from hansa.programs import binaries, process
from hansa.runtime.errors import HansaError

STATE, TENANTS = "state", "tenants"  # folders of local clusters, and of tenants' control planes
CONFIG = "kubeconfig"
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 120.0  # seconds for what takes a moment; a machine that does much else is slow
LOOK_AGAIN = 0.2  # seconds
GRACE = 10.0  # seconds in which a program ends politely
LAST_WORDS = 2000  # characters of a program's log


class DemoFailed(HansaError):
    """Something did not go as it should."""


@dataclass(slots=True)
class Stage:
    """One demo while it is shown. Commands run in its folder, with kubectl, `kubectl vc` and hansa on their path."""

    folder: Path
    environment: dict[str, str]
    _programs: dict[str, asyncio.subprocess.Process] = field(default_factory=dict)

    def say(self, sentence: str) -> None:
        """Tell what comes."""
        bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
        _print(f"\n{bold}# {sentence}{plain}")

    async def run(self, command: str) -> None:
        """Show a command and what it says."""
        _print(f"$ {command}")
        running = await self._shell(command)
        if code := await _ended(running):
            raise DemoFailed(f'"{command}" ended with {code}')

    async def write(self, name: str, text: str) -> None:
        """Make a file, and show it."""
        (self.folder / name).write_text(text)
        await self.run(f"cat {name}")

    async def start(self, name: str, command: str) -> None:
        """Show a command that runs until the end of the demo; what it says goes into a file."""
        _print(f"$ {command} &")
        with self._log(name).open("wb") as log:
            self._programs[name] = await self._shell(command, log.fileno())

    async def until(self, command: str, *, shows: str = "") -> str:
        """Wait until a command succeeds and shows these words, then show it; what it said."""
        said, deadline = "", asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < deadline:
            self._check_programs()
            code, said = await self._look(command)
            if code == 0 and shows in said:
                _print(f"$ {command}\n{said.rstrip()}")
                return said
            await asyncio.sleep(LOOK_AGAIN)
        raise DemoFailed(f'"{command}" did not succeed within {PATIENCE:g} s, it says: {said.strip()}')

    async def ask(self, command: str) -> str:
        """What a command says, for the next one."""
        code, said = await self._look(command)
        if code:
            raise DemoFailed(f'"{command}" ended with {code}, it says: {said.strip()}')
        return said.strip()

    async def keep(self) -> None:
        """Let people look around until they have seen enough."""
        self.say("Everything runs until you press Ctrl-C. In another terminal:")
        for name in ("PATH", "KUBECONFIG", "HANSA_STATE"):
            _print(f"export {name}={self.environment[name]}")
        _print(f"cd {self.folder}")
        enough = asyncio.Event()
        for number in ENDINGS:
            asyncio.get_running_loop().add_signal_handler(number, enough.set)
        await enough.wait()

    async def clear(self) -> None:
        """End everything and remove it, in whatever state it is."""
        for number in ENDINGS:
            asyncio.get_running_loop().add_signal_handler(number, lambda: None)  # it ends already
        self.say("Everything goes, without a trace")
        await asyncio.gather(*(_stop(program) for program in self._programs.values()))
        await asyncio.gather(*(one.stop() for one in process.running(self.folder / TENANTS).values()))
        fleet = Fleet(State(self.folder / STATE))
        await fleet.down(fleet.names())
        shutil.rmtree(self.folder, ignore_errors=True)

    async def _look(self, command: str) -> tuple[int, str]:
        with tempfile.TemporaryFile(dir=self.folder) as said:
            code = await _ended(await self._shell(command, said.fileno()))
            said.seek(0)
            return code, said.read().decode(errors="replace")

    async def _shell(self, command: str, out: int | None = None) -> asyncio.subprocess.Process:
        # A session of its own: Ctrl-C is for us, and we end what runs.
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
                words = self._log(name).read_text(errors="replace")[-LAST_WORDS:]
                raise DemoFailed(f"{name} ended with {program.returncode}, its last words: {words}")

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[Stage]:
    """A stage for as long as the block lasts."""
    kubectl = (await binaries.ensure(["kubectl"], progress=binaries.Renderer(sys.stderr)))["kubectl"]
    folder = Path(tempfile.mkdtemp(prefix="hansa-demo-"))
    programs = (sysconfig.get_path("scripts"), str(kubectl.parent), os.environ.get("PATH", os.defpath))
    given = {
        "PATH": os.pathsep.join(programs),
        "KUBECONFIG": str(folder / CONFIG),
        "HANSA_STATE": str(folder / STATE),
    }
    stage = Stage(folder, {**os.environ, **given})
    loop, interrupt = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    for number in ENDINGS[1:]:
        loop.add_signal_handler(number, signal.raise_signal, signal.SIGINT)
    try:
        yield stage
    finally:
        await stage.clear()
        for number in ENDINGS:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, interrupt)


async def _ended(running: asyncio.subprocess.Process) -> int:
    try:
        return await running.wait()
    finally:
        if running.returncode is None:
            await _stop(running)


async def _stop(running: asyncio.subprocess.Process) -> None:
    """End a command and all that it started, politely if it does so in time."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(running.wait(), GRACE)
            return


def _print(text: str) -> None:
    print(text, flush=True)  # commands write to the same place
