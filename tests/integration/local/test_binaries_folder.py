"""The folder of `--binaries`: it takes precedence, and its binaries must have the right version."""

from pathlib import Path

import pytest

import binaries_lab
from hansa.programs import binaries


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    folder.mkdir()
    return folder


@pytest.fixture
def sources(folder: Path, tmp_path: Path) -> binaries.Sources:
    known = {name: binaries_lab.tiny(name) for name in ("tiny", "other")}
    return binaries.Sources(folder, cache=tmp_path / "cache", catalogue=known, modules=tmp_path / "none")


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


async def refusal(sources: binaries.Sources) -> str:
    with pytest.raises(binaries.Unavailable) as failed:
        await binaries.ensure(["tiny"], sources=sources, progress=pytest.fail)
    return str(failed.value)


async def test_a_binary_of_the_right_minor_version_comes_before_the_cache(
    folder: Path, sources: binaries.Sources
) -> None:
    mine = put(folder / "tiny", "#!/bin/sh\necho tiny v1.2.99\n")
    put(sources.entry(binaries_lab.tiny()).item, "cached")
    held = await binaries.describe(["tiny"], sources=sources)
    assert held == [binaries.BinaryLocation(binaries_lab.tiny(), mine, binaries.Source.FOLDER)]


async def test_a_binary_missing_in_the_folder_is_taken_from_the_cache(folder: Path, sources: binaries.Sources) -> None:
    mine = put(folder / "tiny", "#!/bin/sh\necho tiny v1.2.3\n")
    cached = put(sources.entry(binaries_lab.tiny("other")).item, "cached")
    assert await binaries.ensure(["tiny", "other"], sources=sources) == {"tiny": mine, "other": cached}


async def test_another_version_is_refused_with_what_was_found_and_what_is_needed(
    folder: Path, sources: binaries.Sources
) -> None:
    mine = put(folder / "tiny", "#!/bin/sh\necho tiny v1.3.0\n")
    assert await refusal(sources) == (f"{mine} is not v1.2.x: its version is “tiny v1.3.0”; replace or remove it")


async def test_a_binary_that_fails_when_asked_is_refused(folder: Path, sources: binaries.Sources) -> None:
    mine = put(folder / "tiny", "#!/bin/sh\necho tiny v1.2.3 is broken\nexit 1\n")
    assert (await refusal(sources)).startswith(f"{mine} is not v1.2.x: ")


async def test_a_file_that_is_no_program_is_refused(folder: Path, sources: binaries.Sources) -> None:
    mine = put(folder / "tiny", "\0\0not for this machine")
    assert await refusal(sources) == f"cannot run {mine}: exec format error"
    mine.chmod(0o644)
    assert await refusal(sources) == f"cannot run {mine}: permission denied"


async def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    sources = binaries.Sources(tmp_path / "gone", catalogue={"tiny": binaries_lab.tiny()})
    assert await refusal(sources) == f"binaries folder {tmp_path / 'gone'} does not exist"


async def test_what_has_yet_to_be_made_has_no_path(sources: binaries.Sources) -> None:
    assert await binaries.describe(["tiny"], sources=sources) == [binaries.BinaryLocation(binaries_lab.tiny())]
