"""A folder of binaries that the user names. Each is asked for its version: a cluster of mixed versions fails late."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from hansa.local.binaries import running
from hansa.local.binaries.binary import Binary, minor
from hansa.local.binaries.failures import Unavailable

ANSWER_SECONDS = 30.0


def default_folder() -> Path | None:
    """The folder that HANSA_BINARIES names, if it does."""
    named = os.environ.get("HANSA_BINARIES")
    return Path(named) if named else None


async def look(folder: Path | None, binaries: Iterable[Binary]) -> dict[str, Path]:
    """Those of the binaries that lie in the folder, by name."""
    if folder is None:
        return {}
    if not folder.is_dir():
        raise Unavailable(f"there is no folder {folder} to take binaries from")
    paths = [(binary, folder.absolute() / binary.name) for binary in binaries]
    there = [(binary, path) for binary, path in paths if path.exists()]
    await asyncio.gather(*(_check(binary, path) for binary, path in there))
    return {binary.name: path for binary, path in there}


async def _check(binary: Binary, path: Path) -> None:
    """Refuse a binary that is not of the minor version that is needed."""
    needed = minor(binary.version)
    try:
        ended = await running.run([str(path), *binary.asks_version], deadline=ANSWER_SECONDS)
    except OSError as error:
        raise Unavailable(f"{path} cannot be run: {(error.strerror or '').lower()}") from error
    except TimeoutError:
        raise Unavailable(f"{path} did not tell its version within {ANSWER_SECONDS:.0f} s") from None
    if ended.code or minor(ended.output) != needed:
        says = ended.output.strip().partition("\n")[0] or "nothing"
        raise Unavailable(
            f"{path} is not v{needed}.x: asked for its version it says “{says}”; put another one there or none"
        )
