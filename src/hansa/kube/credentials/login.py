"""Describes the credentials of one cluster and user, from a kubeconfig, a service account or a Secret.

Only `read` of `Text` and `File` reads content; nothing is checked against a server.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hansa.kube.errors import BadCredentials


@dataclass(frozen=True, slots=True)
class Text:
    """A part that is given inline."""

    value: bytes = field(repr=False)
    origin: str

    def read(self) -> bytes:
        return self.value


@dataclass(frozen=True, slots=True)
class File:
    """A part in a file of its own, which may be replaced at any time."""

    path: Path
    origin: str

    def read(self) -> bytes:
        """The file's content now."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise BadCredentials(f"cannot read {self.path}, named by {self.origin}: {error.strerror}") from None


Part = Text | File


@dataclass(frozen=True, slots=True)
class Plugin:
    """An exec plugin: a program that prints credentials."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    api_version: str
    install_hint: str
    provide_cluster_info: bool
    needs_terminal: bool
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The credentials of one cluster and user. `origin` is where it is defined; each part has an origin of its own."""

    server: str
    origin: str
    server_origin: str = ""
    ca: Part | None = None
    skip_verify: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)  # may hold a password
    proxy_origin: str = ""
    certificate: Part | None = None
    key: Part | None = None
    token: Part | None = None
    basic: str = field(default="", repr=False)  # user:password
    plugin: Plugin | None = None
    impersonate: tuple[tuple[str, str], ...] = ()
    cluster_config: object = None  # passed to an exec plugin
    namespace: str = "default"
    files: tuple[Path, ...] = ()  # the kubeconfig files that define it

    def embedded(self) -> Self:
        """The same, if it refers to no files and no exec plugin; for kubeconfigs in objects.

        Users who may write such objects must not choose which files this program reads, or which programs it runs.
        """
        if self.plugin is not None or self.watched_files():
            raise BadCredentials(
                f"{self.origin} refers to files or an exec plugin; embed certificates, keys and tokens instead"
            )
        return self

    def watched_files(self) -> tuple[Path, ...]:
        """All files on which the credentials depend."""
        parts = (self.ca, self.certificate, self.key, self.token)
        return self.files + tuple(part.path for part in parts if isinstance(part, File))


def base64_text(value: object, origin: str) -> Text:
    """A part that is given in base64."""
    try:
        return Text(base64.b64decode(str(value), validate=True), origin)
    except (binascii.Error, ValueError):
        raise BadCredentials(f"{origin} is not valid base64") from None
