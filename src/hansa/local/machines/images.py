"""The images that every real node has: made once from static programs, kept in the cache as archives."""

import asyncio
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hansa.local.machines import command, oci
from hansa.local.machines.oci import Image
from hansa.runtime.errors import HansaError

PAUSE, BUSYBOX, AGNHOST, COREDNS = (f"hansa.local/{name}:1" for name in ("pause", "busybox", "agnhost", "coredns"))
# The programs that the caller must have; busybox is the machine's.
PROGRAMS = ("pause", "agnhost", "coredns")


async def ensure(cache: Path, programs: Mapping[str, Path], *, busybox: Path) -> list[Path]:
    """The archives of all images, made where they are missing."""
    applets = (await command.run(str(busybox), "--list")).split()
    images = [
        Image(PAUSE, {"/pause": programs["pause"]}, ("/pause",)),
        Image(
            BUSYBOX,
            {"/bin/busybox": busybox},
            entrypoint=(),
            arguments=("/bin/sh",),
            links={f"/bin/{name}": "busybox" for name in applets if name != "busybox"},
        ),
        Image(AGNHOST, {"/agnhost": programs["agnhost"]}, ("/agnhost",), arguments=("pause",)),
        Image(COREDNS, {"/coredns": programs["coredns"]}, ("/coredns",)),
    ]
    return [await asyncio.to_thread(_ensure, cache, image) for image in images]


def _ensure(cache: Path, image: Image) -> Path:
    name = image.reference.rpartition("/")[2].replace(":", "-")
    archive = cache / f"{name}-{_key(image)}.tar"
    if archive.exists():
        return archive
    draft = archive.with_name(f".{archive.name}.{os.getpid()}")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        oci.build(image, draft)
        draft.replace(archive)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise HansaError(f"cannot make the image {image.reference} in {cache}: {error.strerror}") from error
    return archive


def _key(image: Image) -> str:
    """Differs when the image or one of its programs does, without reading them."""
    stats = [(path, program.stat()) for path, program in sorted(image.programs.items())]
    marks = [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]
    described = (image.reference, image.entrypoint, image.arguments, sorted(image.links.items()), marks)
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]
