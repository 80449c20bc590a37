"""Atomic file writes, and locks between processes."""

import asyncio
import contextlib
import os
import stat

import pytest

from hansa.programs import files
from hansa.runtime.errors import HansaError


def test_a_file_is_replaced_and_its_folder_made(tmp_path):
    path = tmp_path / "new" / "file"
    files.write(path, "one")
    files.write(path, b"two")
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_equal_content_is_not_written_again(tmp_path):
    path = tmp_path / "file"
    files.write(path, "one")
    before = path.stat().st_ino
    files.write(path, "one")
    assert path.stat().st_ino == before


def test_a_failed_write_raises_an_error_with_the_path(tmp_path):
    (tmp_path / "a file").touch()
    with pytest.raises(HansaError, match="cannot write .*: (File exists|Not a directory)"):
        files.write(tmp_path / "a file" / "below", "x")


async def test_a_lock_is_held_by_one_at_a_time(tmp_path):
    path, held = tmp_path / "lock", 0

    async def worker():
        nonlocal held
        async with files.lock(path, deadline=10):
            held += 1
            assert held == 1
            await asyncio.sleep(0)
            held -= 1

    await asyncio.gather(*(worker() for _ in range(5)))


async def test_a_lock_timeout_names_the_lock_file(tmp_path):
    path = tmp_path / "lock"
    async with files.lock(path, deadline=1):
        with pytest.raises(files.Locked, match=f"has held the lock {path} for 0 s"):
            async with files.lock(path, deadline=0.01):
                pass


async def test_a_lock_file_may_be_removed_by_its_holder_while_others_wait(tmp_path):
    path, order = tmp_path / "lock", []

    async def worker(name):
        async with files.lock(path, deadline=10):
            order.append(f"{name} in")
            await asyncio.sleep(0)
            path.unlink()
            order.append(f"{name} out")

    await asyncio.gather(*(worker(name) for name in "abc"))
    assert [event.split()[1] for event in order] == ["in", "out"] * 3
    assert not path.exists()


async def test_a_lock_ends_with_its_holder(tmp_path):
    path = tmp_path / "lock"
    with contextlib.suppress(ZeroDivisionError):
        async with files.lock(path, deadline=1):
            raise ZeroDivisionError
    async with files.lock(path, deadline=1):
        assert os.path.exists(path)  # noqa: PTH110
