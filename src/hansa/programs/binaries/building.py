"""Builds binaries with Go from the pinned modules in this package.

Used when no official release can be downloaded. A build never changes go.mod or go.sum.
"""

import os
import re
import shutil
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from hansa.programs import execution
from hansa.programs.binaries import failures
from hansa.programs.binaries.binary import Binary, Platform
from hansa.programs.binaries.failures import SourceFailed
from hansa.programs.binaries.progress import Phase, Report
from hansa.programs.binaries.toolchain import Toolchain, toolchain

BUILD_SECONDS = 3600.0  # the first build of kube-apiserver takes 4 minutes on two cores


def modules() -> Traversable:
    """The folder of the pinned Go modules."""
    return resources.files("hansa.programs.binaries") / "go"


async def build(binary: Binary, here: Platform, *, source: Traversable, root: Path, work: Path, report: Report) -> Path:
    """Build the binary into the work folder."""
    module = source / binary.build.module
    try:
        go = await toolchain(needed_go((module / "go.mod").read_text()), root=root, here=here, report=report)
        report.enter(Phase.BUILDING, f"go{go.version}")
        return await _compile(binary, here, go=go, module=module, work=work)
    except (SourceFailed, TimeoutError) as failure:
        raise SourceFailed(f"build failed: {str(failure) or 'deadline exceeded'}") from failure


def needed_go(go_mod: str) -> str:
    """The Go version that a go.mod requires."""
    found = re.search(r"^go (\d+(\.\d+)*)", go_mod, re.MULTILINE)
    return found[1] if found else "1"


async def _compile(binary: Binary, here: Platform, *, go: Toolchain, module: Traversable, work: Path) -> Path:
    copy, target, scratch = work / "module", work / binary.name, work / "scratch"
    _copy(module, copy)  # an installed package may be read-only, or a zip file
    scratch.mkdir()
    linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in binary.build.variables.items())])
    flags = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", linker)
    command = [str(go.program), "build", *flags, "-o", str(target), binary.build.package]
    env = _environment(here, scratch)
    ended = await execution.run(execution.bound_to_parent(command), deadline=BUILD_SECONDS, cwd=copy, env=env)
    if ended.code and failures.reports_full_disk(ended.output):
        raise failures.disk_is_full(await _folder_with_least_space(go, env, work.parent))
    if ended.code:
        raise SourceFailed(f"go{go.version}: {ended.last_line}")
    return target


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_file():
            (target / entry.name).write_bytes(entry.read_bytes())


def _environment(here: Platform, scratch: Path) -> Mapping[str, str]:
    """The user's environment (proxies, caches), with the variables fixed that influence the resulting binary."""
    ours = {
        "CGO_ENABLED": "0",
        "GOOS": here.os,
        "GOARCH": here.arch,
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "GO111MODULE": "on",
        "GOFLAGS": "-mod=readonly",
        "GOTMPDIR": str(scratch),  # leftovers of a killed compiler are removed with the work folder
    }
    return {name: value for name, value in os.environ.items() if name != "GOROOT"} | ours


async def _folder_with_least_space(go: Toolchain, env: Mapping[str, str], ours: Path) -> Path:
    """The folder that Go writes to with the least free space: Go's messages do not always name it."""
    ended = await execution.run([str(go.program), "env", "GOCACHE", "GOMODCACHE"], deadline=30.0, env=env)
    folders = [ours, *(Path(line) for line in ended.output.splitlines() if line)]
    return min((folder for folder in folders if folder.is_dir()), key=lambda folder: shutil.disk_usage(folder).free)
