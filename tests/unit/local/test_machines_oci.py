"""Images built without a daemon: read back, they are what was asked for, byte for byte the same each time."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hansa.local.machines import images, oci
from hansa.local.machines.oci import Image
from hansa.runtime.errors import HansaError


class Archive:
    """An image archive, read back."""

    def __init__(self, path: Path) -> None:
        with tarfile.open(path) as tar:
            self.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        self.index = json.loads(self.files["index.json"])

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        algorithm, _, digest = descriptor["digest"].partition(":")
        content = self.files[f"blobs/{algorithm}/{digest}"]
        assert hashlib.sha256(content).hexdigest() == digest
        assert len(content) == descriptor["size"]
        return content

    def image(self, number: int) -> tuple[dict[str, Any], tarfile.TarFile]:
        manifest = json.loads(self.blob(self.index["manifests"][number]))
        config = json.loads(self.blob(manifest["config"]))
        layer = gzip.decompress(self.blob(manifest["layers"][0]))
        assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(layer).hexdigest()]
        return config, tarfile.open(fileobj=io.BytesIO(layer))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF and more")
    return path


def test_an_image_holds_its_programs_links_and_command(tmp_path: Path, program: Path) -> None:
    image = Image("x.local/box:2", {"/opt/bin/box": program}, ("/opt/bin/box",), ("-v",), {"/bin/sh": "../opt/bin/box"})
    oci.build([image], tmp_path / "box.tar")
    config, layer = Archive(tmp_path / "box.tar").image(0)
    assert config["config"]["Entrypoint"] == ["/opt/bin/box"]
    assert config["config"]["Cmd"] == ["-v"]
    with layer:
        box = layer.getmember("opt/bin/box")
        assert box.mode == 0o755
        assert layer.extractfile(box).read() == program.read_bytes()  # type: ignore[union-attr]
        assert layer.getmember("bin/sh").linkname == "../opt/bin/box"
        assert layer.getmember("opt/bin").isdir()
        assert layer.getmember("tmp").mode == 0o1777
        assert b"nobody" in layer.extractfile("etc/passwd").read()  # type: ignore[union-attr]


def test_an_image_holds_files_and_how_its_program_runs(tmp_path: Path, program: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh")
    script.chmod(0o755)
    files = {"/opt/data": program, "/usr/bin/script": script}
    image = Image("x:1", {}, files=files, environment={"A": "b"}, user=oci.USER, aliases=("x:2",))
    oci.build([image], tmp_path / "x.tar")
    archive = Archive(tmp_path / "x.tar")
    names = [entry["annotations"]["io.containerd.image.name"] for entry in archive.index["manifests"]]
    assert (names, archive.index["manifests"][0]["digest"]) == (["x:1", "x:2"], archive.index["manifests"][1]["digest"])
    config, layer = archive.image(0)
    assert (config["config"]["User"], config["config"]["Env"][1:]) == ("65532:65532", ["A=b"])
    with layer:
        assert [layer.getmember(name).mode for name in ("opt/data", "usr/bin/script")] == [0o644, 0o755]


def test_an_archive_names_each_of_its_images(tmp_path: Path, program: Path) -> None:
    oci.build([Image(f"x.local/{name}:1", {"/x": program}) for name in ("a", "b")], tmp_path / "two.tar")
    archive = Archive(tmp_path / "two.tar")
    names = [entry["annotations"]["io.containerd.image.name"] for entry in archive.index["manifests"]]
    assert names == ["x.local/a:1", "x.local/b:1"]
    assert json.loads(archive.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_the_same_files_give_the_same_bytes(tmp_path: Path, program: Path) -> None:
    image = Image("x.local/a:1", {"/x": program}, links={"/b": "x", "/a": "x"})
    for name in ("one", "two"):
        oci.build([image], tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    for name in images.PROGRAMS:
        (tmp_path / name).write_bytes(name.encode())
    busybox = tmp_path / "busybox"
    busybox.write_text("#!/bin/sh\necho busybox sh ls\n")
    busybox.chmod(0o755)
    return {name: tmp_path / name for name in (*images.PROGRAMS, "busybox")}


async def test_all_images_of_a_node_are_in_one_archive_that_is_made_once(
    tmp_path: Path, programs: dict[str, Path]
) -> None:
    first = await images.ensure(tmp_path / "cache", programs, busybox=programs["busybox"])
    archive = Archive(first)
    assert len(archive.index["manifests"]) == 4
    _, layer = archive.image(1)
    with layer:
        assert {m.name for m in layer if m.issym()} == {"bin/sh", "bin/ls"}
    made = first.stat().st_mtime_ns
    assert await images.ensure(tmp_path / "cache", programs, busybox=programs["busybox"]) == first
    assert first.stat().st_mtime_ns == made


async def test_another_program_makes_another_archive(tmp_path: Path, programs: dict[str, Path]) -> None:
    first = await images.ensure(tmp_path / "cache", programs, busybox=programs["busybox"])
    programs["pause"].write_bytes(b"newer pause")
    assert await images.ensure(tmp_path / "cache", programs, busybox=programs["busybox"]) != first


async def test_an_unreadable_program_is_an_error_and_leaves_no_partial_archive(
    tmp_path: Path, programs: dict[str, Path]
) -> None:
    programs["coredns"].unlink()
    programs["coredns"].mkdir()
    with pytest.raises(HansaError, match=r"cannot build the images of real nodes in .*cache: Is a directory"):
        await images.ensure(tmp_path / "cache", programs, busybox=programs["busybox"])
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]
