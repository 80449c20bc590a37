"""Finds binaries in a folder that the user names (--binaries, HANSA_BINARIES).

The version of each binary is checked, because a cluster of mixed minor versions fails late and with obscure errors.
"""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from hansa.programs import execution
from hansa.programs.binaries.binary import Binary, minor
from hansa.programs.binaries.failures import Unavailable

VERSION_SECONDS = 30.0


def default_folder() -> Path | None:
    """The folder in HANSA_BINARIES, if set."""
    named = os.environ.get("HANSA_BINARIES")
    return Path(named) if named else None


async def find(folder: Path | None, binaries: Iterable[Binary]) -> dict[str, Path]:
    """The binaries that exist in the folder, by name."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise Unavailable(f"binaries folder {folder} does not exist")
    paths = [(binary, folder.absolute() / binary.name) for binary in binaries]
    found = [(binary, path) for binary, path in paths if path.exists()]
    await asyncio.gather(*(_check(binary, path) for binary, path in found))
    return {binary.name: path for binary, path in found}


async def _check(binary: Binary, path: Path) -> None:
    """Refuse a binary of another minor version."""
    needed = minor(binary.version)
    try:
        ended = await execution.run([str(path), *binary.version_arguments], deadline=VERSION_SECONDS)
    except OSError as error:
        raise Unavailable(f"cannot run {path}: {(error.strerror or '').lower()}") from error
    except TimeoutError:
        raise Unavailable(f"{path} did not print its version within {VERSION_SECONDS:.0f} s") from None
    if ended.code or minor(ended.output) != needed:
        printed = ended.output.strip().partition("\n")[0] or "empty"
        raise Unavailable(f"{path} is not v{needed}.x: its version is “{printed}”; replace or remove it")
