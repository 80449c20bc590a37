"""Binaries made by Go from the pinned modules that travel with this package. A build changes nothing in a module."""

import os
import re
import shutil
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from hansa.local.binaries import failures, running
from hansa.local.binaries.binary import Binary, Platform
from hansa.local.binaries.failures import SourceFailed
from hansa.local.binaries.progress import Phase, Report
from hansa.local.binaries.toolchain import Toolchain, toolchain

BUILD_SECONDS = 3600.0  # kube-apiserver takes 4 minutes on two cores, the first time


def modules() -> Traversable:
    """The folder of the pinned Go modules."""
    return resources.files("hansa.local") / "go"


async def build(binary: Binary, here: Platform, *, source: Traversable, root: Path, work: Path, report: Report) -> Path:
    """Build the binary into the work folder."""
    module = source / binary.build.module
    try:
        go = await toolchain(needed_go((module / "go.mod").read_text()), root=root, here=here, report=report)
        report.enter(Phase.BUILDING, f"go{go.version}")
        return await _compile(binary, here, go=go, module=module, work=work)
    except (SourceFailed, TimeoutError) as failure:
        raise SourceFailed(f"build failed: {str(failure) or 'it took too long'}") from failure


def needed_go(go_mod: str) -> str:
    """The version that a go.mod asks for."""
    found = re.search(r"^go (\d+(\.\d+)*)", go_mod, re.MULTILINE)
    return found[1] if found else "1"


async def _compile(binary: Binary, here: Platform, *, go: Toolchain, module: Traversable, work: Path) -> Path:
    copy, made, scratch = work / "module", work / binary.name, work / "scratch"
    _copy(module, copy)  # an installed package may be read-only, or a zip file
    scratch.mkdir()
    linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in binary.build.variables.items())])
    flags = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", linker)
    command = [str(go.program), "build", *flags, "-o", str(made), binary.build.package]
    env = _environment(here, scratch)
    ended = await running.run(running.bound_to_us(command), deadline=BUILD_SECONDS, cwd=copy, env=env)
    if ended.code and failures.says_disk_is_full(ended.output):
        raise failures.disk_is_full(await _fullest(go, env, work.parent))
    if ended.code:
        raise SourceFailed(f"go{go.version}: {ended.last_line}")
    return made


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_file():
            (target / entry.name).write_bytes(entry.read_bytes())


def _environment(here: Platform, scratch: Path) -> Mapping[str, str]:
    """The user's settings (proxies, caches) without those that would make another binary of the same sources."""
    ours = {
        "CGO_ENABLED": "0",
        "GOOS": here.os,
        "GOARCH": here.arch,
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GO111MODULE": "on",
        "GOFLAGS": "-mod=readonly",
        "GOTMPDIR": str(scratch),  # what a killed compiler leaves is swept away with the rest
    }
    return {name: value for name, value in os.environ.items() if name != "GOROOT"} | ours


async def _fullest(go: Toolchain, env: Mapping[str, str], ours: Path) -> Path:
    """Which of the folders that Go writes to has the least space: its messages don't always say."""
    ended = await running.run([str(go.program), "env", "GOCACHE", "GOMODCACHE"], deadline=30.0, env=env)
    folders = [ours, *(Path(line) for line in ended.output.splitlines() if line)]
    return min((folder for folder in folders if folder.is_dir()), key=lambda folder: shutil.disk_usage(folder).free)
