"""Describes a program of one version: where its official release is, and how it is built with Go."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # other machines have the same name in Python and in Go


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system and an architecture, as GOOS and GOARCH name them."""

    os: str
    arch: str


def this_platform() -> Platform:
    """The platform of this machine."""
    machine = platform.machine()
    return Platform(platform.system().lower(), MACHINES.get(machine, machine))


@dataclass(frozen=True, slots=True)
class Release:
    """An official download; `checksums` is the URL of a file of SHA-256 sums or of GitHub's JSON about the release."""

    url: str
    checksums: str
    member: str = ""  # path of the program in the archive; empty if the download is the program itself


@dataclass(frozen=True, slots=True)
class Build:
    """A Go package, the pinned module that builds it, and the variables that the linker sets (-X)."""

    module: str
    package: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binary:
    """A program of one version."""

    name: str
    version: str
    build: Build
    release: Release | None = None
    version_arguments: tuple[str, ...] = ("--version",)

    @property
    def label(self) -> str:
        """Name and version, for messages."""
        return f"{self.name} {self.version}"

    def filled(self, template: str, here: Platform) -> str:
        """The template with name, version and platform filled in."""
        return template.format(name=self.name, version=self.version, os=here.os, arch=here.arch)


def minor(text: str) -> str | None:
    """The major and minor number of the first version in the text: `1.35` for `Kubernetes v1.35.8`."""
    found = re.search(r"(?<![\w.])v?(\d+\.\d+)", text)
    return found[1] if found else None
