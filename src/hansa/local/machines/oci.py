"""Builds OCI image archives from files, without a registry or a daemon.

The same files always give the same bytes. Layers are lightly compressed: each node imports a third of the bytes, and
unpacks only the images that it runs.
"""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
FOLDERS = ("dev", "etc", "proc", "run", "sys", "tmp", "var")
USER = 65532  # of images whose programs need no privileges
ACCOUNTS = {
    "/etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    b"nonroot:x:65532:65532:nonroot:/tmp:/bin/false\n",
    "/etc/group": b"root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n",
}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STICKY = 0o1777
# The fastest level: half a second for a large program.
COMPRESSION = 1


@dataclass(frozen=True, slots=True)
class Image:
    """An image to build: programs, files and symbolic links by their path in the image, and how it is run.

    Programs can be executed, and files if they can be where they come from. `aliases` are further references.
    """

    reference: str
    programs: Mapping[str, Path]
    entrypoint: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    user: int = 0
    aliases: tuple[str, ...] = ()


def build(images: Iterable[Image], archive: Path) -> None:
    """Write an archive of images, in the format of `ctr images import`."""
    entries = []
    with tarfile.open(archive, "w") as tar:
        _add_file(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}), mode=0o644)
        for image in images:
            layer = _layer(image)
            packed = gzip.compress(layer, COMPRESSION, mtime=0)
            config = _json(_config(image, _digest(layer)))
            manifest = _json(_manifest(config, packed))
            entries += [_entry(reference, manifest) for reference in (image.reference, *image.aliases)]
            for blob in (config, manifest, packed):
                _add_file(tar, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob, mode=0o644)
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
        _add_file(tar, "index.json", _json(index), mode=0o644)


def _entry(reference: str, manifest: bytes) -> dict[str, Any]:
    return {
        **_descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
        "platform": {"os": "linux", "architecture": _architecture()},
        "annotations": {
            "io.containerd.image.name": reference,
            "org.opencontainers.image.ref.name": reference.rpartition(":")[2],
        },
    }


def _manifest(config: bytes, layer: bytes) -> dict[str, Any]:
    return {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    }


def _layer(image: Image) -> bytes:
    buffer = io.BytesIO()
    paths = [*image.programs, *image.links, *image.files]
    folders = {*FOLDERS, *(str(parent)[1:] for path in paths for parent in PurePosixPath(path).parents)} - {""}
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in sorted(folders):
            _add(tar, folder, tarfile.DIRTYPE, mode=STICKY if folder == "tmp" else 0o755)
        for path, content in ACCOUNTS.items():
            _add_file(tar, path[1:], content, mode=0o644)
        for path, program in sorted(image.programs.items()):
            _add_file(tar, path[1:], program.read_bytes(), mode=0o755)
        for path, source in sorted(image.files.items()):
            _add_file(tar, path[1:], source.read_bytes(), mode=0o755 if source.stat().st_mode & 0o100 else 0o644)
        for path, target in sorted(image.links.items()):
            _add(tar, path[1:], tarfile.SYMTYPE, mode=0o777, target=target)
    return buffer.getvalue()


def _config(image: Image, layer: str) -> dict[str, Any]:
    environment = {"PATH": PATH, **image.environment}
    return {
        "architecture": _architecture(),
        "os": "linux",
        "config": {
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.arguments),
            **({"User": f"{image.user}:{image.user}"} if image.user else {}),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
    }


def _add(tar: tarfile.TarFile, name: str, kind: bytes, *, mode: int, target: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, target
    tar.addfile(info)


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, *, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.size = mode, len(content)
    tar.addfile(info, io.BytesIO(content))


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _architecture() -> str:
    return ARCHITECTURES.get(platform.machine(), platform.machine())
