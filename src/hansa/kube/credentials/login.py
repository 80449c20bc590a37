"""What a kubeconfig, a mounted service account or a Secret says about one cluster and one user: where each part is.

Pure description: nothing is read here but by `Text` and `File`, and nothing is checked against a server.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hansa.kube.errors import BadCredentials


@dataclass(frozen=True, slots=True)
class Text:
    """A part that was given in place."""

    value: bytes = field(repr=False)
    origin: str

    def read(self) -> bytes:
        return self.value


@dataclass(frozen=True, slots=True)
class File:
    """A part that lies in a file of its own, which may be replaced at any time."""

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
    """A program that prints credentials."""

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
    """One way into one cluster. `origin` names the whole, each part names itself."""

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
    cluster_config: object = None  # what an exec plugin may ask for
    namespace: str = "default"
    files: tuple[Path, ...] = ()  # the files in which this description itself stands

    def watched_files(self) -> tuple[Path, ...]:
        """All files on which the credentials depend."""
        parts = (self.ca, self.certificate, self.key, self.token)
        return self.files + tuple(part.path for part in parts if isinstance(part, File))


def base64_text(value: object, origin: str) -> Text:
    """A part that was given in base64."""
    try:
        return Text(base64.b64decode(str(value), validate=True), origin)
    except (binascii.Error, ValueError):
        raise BadCredentials(f"{origin} is not valid base64") from None
