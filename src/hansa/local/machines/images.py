"""The images that every real node has, built once from static programs and cached as one archive."""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hansa.local.machines import command, oci
from hansa.local.machines.oci import Image
from hansa.programs import files
from hansa.runtime.errors import HansaError

PAUSE, BUSYBOX, AGNHOST, COREDNS = (f"hansa.local/{name}:1" for name in ("pause", "busybox", "agnhost", "coredns"))
# The binaries that callers provide; busybox comes from the machine.
PROGRAMS = ("pause", "agnhost", "coredns")
# It takes two seconds on an idle machine.
BUILD_SECONDS = 120.0


async def ensure(cache: Path, programs: Mapping[str, Path], *, busybox: Path) -> Path:
    """The archive of all images, built if it is missing: containerd imports one archive faster than several."""
    applets = (await command.run(str(busybox), "--list")).split()
    images = _images(programs, busybox, applets)
    archive = cache / f"images-{_key(images)}.tar"
    async with files.lock(cache / "lock", deadline=BUILD_SECONDS):
        if not archive.exists():
            await asyncio.to_thread(_build, images, archive)
    return archive


def _images(programs: Mapping[str, Path], busybox: Path, applets: Iterable[str]) -> list[Image]:
    links = {f"/bin/{name}": "busybox" for name in applets if name != "busybox"}
    return [
        Image(PAUSE, {"/pause": programs["pause"]}, entrypoint=("/pause",)),
        Image(BUSYBOX, {"/bin/busybox": busybox}, arguments=("/bin/sh",), links=links),
        Image(AGNHOST, {"/agnhost": programs["agnhost"]}, entrypoint=("/agnhost",), arguments=("pause",)),
        Image(COREDNS, {"/coredns": programs["coredns"]}, entrypoint=("/coredns",)),
    ]


def _build(images: Sequence[Image], archive: Path) -> None:
    draft = archive.with_name(f"{archive.name}.draft")
    try:
        oci.build(images, draft)
        draft.replace(archive)
    except OSError as error:
        raise HansaError(f"cannot build the images of real nodes in {archive.parent}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def _key(images: Sequence[Image]) -> str:
    """A key of the images, the sizes and times of their programs, and the code that builds them."""
    described = [
        (image, [(program.stat().st_size, program.stat().st_mtime_ns) for program in image.programs.values()])
        for image in images
    ]
    return hashlib.sha256(repr(described).encode() + Path(oci.__file__).read_bytes()).hexdigest()[:16]
