"""A tiny Go program that takes the same way through builder, downloader and cache as the Kubernetes binaries."""

import asyncio
import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path

from hansa.programs import binaries
from hansa.programs.binaries import progress, toolchain

MAIN = """package main

import (
	"fmt"
	"os"
)

var version = "v0.0.0"

func main() {
	fmt.Fprintln(os.Stdout, "tiny", version)
}
"""
SLOW_MAIN = MAIN.replace('"os"\n', '"os"\n\t_ "net/http"\n')  # with an empty build cache this takes a good while
NOWHERE = binaries.Release("http://127.0.0.1:9/tiny", "http://127.0.0.1:9/tiny.sha256")  # nothing listens on port 9
TIMEOUTS = binaries.Timeouts(connect=30, stall=30)  # seconds: a server in a busy test process answers late
PROGRAM = b"#!/bin/sh\necho tiny v1.2.3\n"

# Provides the program as a user's process would; prints each phase, then the source.
CHILD = """
import asyncio, sys
from pathlib import Path
import binaries_lab
from hansa.programs import binaries
from hansa.runtime.errors import HansaError

async def main():
    sources = binaries_lab.sources(Path(sys.argv[1]), Path(sys.argv[2]))
    say = lambda step: print(step.phase.name, flush=True)
    print((await binaries.provide(["tiny"], sources=sources, progress=say))[0].source.name)

try:
    asyncio.run(main())
except HansaError as error:
    sys.exit(str(error))
"""


async def go() -> Path:
    """The Go of the user's cache: a cache of the test would have to install it again."""
    report = progress.Report(tiny(), lambda _: None)
    root, here = binaries.default_cache(), binaries.this_platform()
    return (await toolchain.toolchain("1.26.0", root=root, here=here, report=report)).program


def tiny(name: str = "tiny", *, release: binaries.Release | None = None) -> binaries.Binary:
    """The program; the linker writes its version."""
    return binaries.Binary(name, "v1.2.3", binaries.Build("tiny", ".", {"main.version": "v1.2.3"}), release)


def write_module(folder: Path, main: str = MAIN, *, go: str = "1.25.0") -> Path:
    """The Go module of the program, in a folder of modules."""
    module = folder / "tiny"
    module.mkdir(parents=True, exist_ok=True)
    (module / "go.mod").write_text(f"module hansa.dev/test/tiny\n\ngo {go}\n")
    (module / "main.go").write_text(main)
    return folder


def sources(
    cache: Path, modules: Path, *entries: binaries.Binary, timeouts: binaries.Timeouts = TIMEOUTS
) -> binaries.Sources:
    """Sources with this program only."""
    known = {entry.name: entry for entry in entries or (tiny(),)}
    return binaries.Sources(folder=None, cache=cache, catalogue=known, modules=modules, timeouts=timeouts)


def released(base: str, **changes: str) -> binaries.Binary:
    """The program with a release on this server."""
    release = binaries.Release(f"{base}/{{name}}", f"{base}/{{name}}.sha256")
    return tiny(release=dataclasses.replace(release, **changes))


async def child(cache: Path, modules: Path, **environment: str) -> asyncio.subprocess.Process:
    """A process that provides the program."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CHILD,
        str(cache),
        str(modules),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)} | environment,
    )


async def eventually(holds: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


def processes_in(folder: Path) -> list[str]:
    """The processes that work in the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            place = (entry / "cwd").readlink()
            ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue  # it has ended meanwhile
        if place.is_relative_to(folder) and not ended:
            found.append(entry.name)
    return found


def half_done(cache: Path) -> list[Path]:
    """Files in the cache other than locks and the program."""
    return [path for path in cache.glob("*/*") if path.name not in {"lock", "tiny", "go"}]
