"""Requirements of real nodes, and how missing ones are reported."""

import struct
from pathlib import Path

import pytest

from hansa.local.machines import requirements
from hansa.local.machines.requirements import CannotRunNodes


def test_every_command_that_is_missing_is_named_and_so_are_its_packages(tmp_path: Path) -> None:
    names = requirements.missing(str(tmp_path), cni_folders=[tmp_path])
    assert set(names) == set(requirements.PACKAGES)
    assert requirements.packages(names) == [
        "busybox-static",
        "containerd",
        "containernetworking-plugins",
        "iproute2",
        "iptables",
        "nftables",
        "runc",
        "util-linux",
    ]


def test_what_is_there_is_not_missing(tmp_path: Path) -> None:
    for name in requirements.PACKAGES:
        (tmp_path / name).touch(mode=0o755)
    assert requirements.missing(str(tmp_path), cni_folders=[tmp_path]) == []
    (tmp_path / "runc").unlink()
    (tmp_path / "portmap").unlink()
    assert requirements.missing(str(tmp_path), cni_folders=[tmp_path]) == ["runc", *requirements.CNI_PLUGINS]


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ("containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3", 1),
        ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", 1),
        ("containerd github.com/containerd/containerd/v2 v2.1.4 75cb2b7193e4e490e9fbdc236c0e811ccaba3376", 2),
        ("containerd github.com/containerd/containerd/v2 2.2.0-rc.1", 2),
    ],
)
def test_the_major_version_of_containerd_is_read(printed: str, major: int) -> None:
    assert requirements.containerd_major(printed) == major


def test_output_without_a_version_is_refused() -> None:
    with pytest.raises(CannotRunNodes, match='no version in the output of "containerd --version": what'):
        requirements.containerd_major("what?\n")


def elf(*kinds: int) -> bytes:
    """A program of 64 bits that has segments of these kinds."""
    header = b"\x7fELF\x02".ljust(32, b"\0") + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, len(kinds))
    return header.ljust(64, b"\0") + b"".join(struct.pack("<I", kind).ljust(56, b"\0") for kind in kinds)


@pytest.mark.parametrize(
    ("content", "expected"),
    [(elf(1, 1), True), (elf(6, 3, 1), False), (b"#!/bin/sh\n", False), (b"", False)],
)
def test_a_program_is_static_if_it_has_no_interpreter_segment(tmp_path: Path, content: bytes, expected: bool) -> None:
    (tmp_path / "program").write_bytes(content)
    assert requirements.is_static(tmp_path / "program") is expected
