"""A program at one version, and the two ways to get it when it is missing: an official release and a Go build."""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # the others have the same name in Python and in Go


@dataclass(frozen=True, slots=True)
class Platform:
    """An operating system and a processor, in Go's words."""

    os: str
    arch: str


def this_platform() -> Platform:
    """The machine that this process runs on."""
    machine = platform.machine()
    return Platform(platform.system().lower(), MACHINES.get(machine, machine))


@dataclass(frozen=True, slots=True)
class Release:
    """An official download; `checksums` is a file of SHA-256 sums or GitHub's JSON about the release."""

    url: str
    checksums: str
    member: str = ""  # where the program lies in the archive; without it the download is the program


@dataclass(frozen=True, slots=True)
class Build:
    """A Go package, the pinned module that it is built in, and what the linker writes into its variables."""

    module: str
    package: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Binary:
    """A program at one version."""

    name: str
    version: str
    build: Build
    release: Release | None = None
    asks_version: tuple[str, ...] = ("--version",)

    @property
    def label(self) -> str:
        """How a person is told of it."""
        return f"{self.name} {self.version}"

    def filled(self, template: str, here: Platform) -> str:
        """The template with this program and that platform written in."""
        return template.format(name=self.name, version=self.version, os=here.os, arch=here.arch)


def minor(text: str) -> str | None:
    """The major and minor number of the first version in the text: `1.35` for `Kubernetes v1.35.8`."""
    found = re.search(r"(?<![\w.])v?(\d+\.\d+)", text)
    return found[1] if found else None
