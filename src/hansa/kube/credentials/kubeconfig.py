"""Reads kubeconfig files: contexts, clusters and users, from one file or from several, merged as kubectl does.

Errors name the file and the field. Values are not shown if they may be secrets.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hansa.kube.credentials.login import File, Login, Part, Plugin, Text, base64_text
from hansa.kube.credentials.refreshing import Credentials
from hansa.kube.errors import BadCredentials

EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"  # a cluster's settings for its plugin


def from_files(*paths: Path | str, context: str = "", remedy: str = "correct the path") -> Credentials:
    """Credentials from kubeconfig files, read again when one of them changes. `remedy` is for missing files."""
    files = tuple(Path(path) for path in paths)
    return Credentials(lambda: login(read_files(files, remedy=remedy), context=context))


def from_environment(
    environ: Mapping[str, str] | None = None, *, context: str = "", flag: str = "--kubeconfig"
) -> Credentials:
    """Credentials from the files in $KUBECONFIG, or from ~/.kube/config. `flag` is what the user can give instead."""
    named = (os.environ if environ is None else environ).get("KUBECONFIG", "")
    paths = [Path(path) for path in named.split(os.pathsep) if path]
    remedy = f"{'correct' if paths else 'set'} KUBECONFIG, or give {flag}"
    return from_files(*(paths or [Path.home() / ".kube" / "config"]), context=context, remedy=remedy)


def read_files(paths: Sequence[Path], *, remedy: str = "correct the path") -> list["Entry"]:
    """Read kubeconfigs to be merged. As kubectl does: of several files some may be missing, the only one may not."""
    there = [path for path in paths if path.exists()]
    if not there:
        raise BadCredentials(f"there is no kubeconfig at {' or '.join(str(path) for path in paths)}; {remedy}")
    return [_parse(_read(path), str(path), path.absolute().parent) for path in there]


def parse(text: bytes | str, *, origin: str, context: str = "") -> Login:
    """The login in a kubeconfig's text; `origin` names the text in messages."""
    return login([_parse(text, origin, Path())], context=context)


@dataclass(frozen=True, slots=True)
class Entry:
    """A mapping in a kubeconfig, with its path and file for messages."""

    fields: Mapping[str, Any]
    at: str  # such as users[admin].user
    file: str
    folder: Path

    def where(self, name: str) -> str:
        return f"{self.at}.{name} of {self.file}" if self.at else f"{name} of {self.file}"

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if value is None:
            return ""
        if isinstance(value, Mapping | list):
            raise BadCredentials(f"{self.where(name)} must be a string")
        return str(value)

    def flag(self, name: str) -> bool:
        value = self.fields.get(name) or False
        if not isinstance(value, bool):
            raise BadCredentials(f"{self.where(name)} must be true or false")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.fields.get(name) or []
        if not isinstance(value, list):
            raise BadCredentials(f"{self.where(name)} must be a list")
        return tuple(str(item) for item in value)

    def child(self, name: str) -> "Entry | None":
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise BadCredentials(f"{self.where(name)} must be a mapping")
        return Entry(value, f"{self.at}.{name}" if self.at else name, self.file, self.folder)

    def mappings(self, name: str) -> list[Mapping[str, Any]]:
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise BadCredentials(f"{self.where(name)} must be a list of mappings")
        return value

    def named(self, collection: str, name: str, inner: str) -> "Entry | None":
        """The entry of a list such as `clusters` with that name."""
        found = next((item for item in self.mappings(collection) if str(item.get("name")) == name), None)
        return None if found is None else Entry(found, f"{collection}[{name}]", self.file, self.folder).child(inner)

    def part(self, name: str) -> Part | None:
        """A part that is either `name`, a path relative to the kubeconfig, or `name`-data in base64, which wins."""
        if data := self.text(f"{name}-data"):
            return base64_text(data, self.where(f"{name}-data"))
        return self.file_at(name)

    def file_at(self, name: str) -> Part | None:
        path = self.text(name)
        return File(self.folder / Path(path).expanduser(), self.where(name)) if path else None


def login(files: Sequence[Entry], *, context: str = "") -> Login:
    """The login of a context (by default the current one) in merged kubeconfigs: the first definition wins."""
    origin = " or ".join(file.file for file in files)
    wanted = context or next((name for file in files if (name := file.text("current-context"))), "")
    if not wanted:
        raise BadCredentials(f"{origin} has no current-context; name a context")
    chosen = _find(files, "contexts", wanted, "context")
    if chosen is None:
        known = ", ".join(_names(files, "contexts")) or "none"
        raise BadCredentials(f'there is no context "{wanted}" in {origin}; it has {known}')
    cluster = _referred(files, chosen, "cluster", "clusters")
    user = _referred(files, chosen, "user", "users") if chosen.text("user") else None
    if not cluster.text("server"):
        raise BadCredentials(f"{cluster.where('server')} is missing")
    described = _cluster(cluster) | (_user(user) if user else {})
    return Login(
        **described,
        origin=f'context "{wanted}" of {origin}',
        namespace=chosen.text("namespace") or "default",
        files=tuple(Path(file.file) for file in files if file.folder != Path()),
    )


def _cluster(cluster: Entry) -> dict[str, Any]:
    extensions = cluster.mappings("extensions")
    config = next((item.get("extension") for item in extensions if item.get("name") == EXEC_EXTENSION), None)
    return {
        "server": cluster.text("server"),
        "server_origin": cluster.where("server"),
        "ca": cluster.part("certificate-authority"),
        "skip_verify": cluster.flag("insecure-skip-tls-verify"),
        "server_name": cluster.text("tls-server-name"),
        "proxy": cluster.text("proxy-url"),
        "proxy_origin": cluster.where("proxy-url"),
        "cluster_config": config,
    }


def _user(user: Entry) -> dict[str, Any]:
    if "auth-provider" in user.fields:
        raise BadCredentials(f"{user.where('auth-provider')} is no longer a part of Kubernetes; use an exec plugin")
    # As in client-go: a token file wins over a token, since it is the one that rotates.
    token = user.file_at("tokenFile") or (
        Text(user.text("token").encode(), user.where("token")) if user.text("token") else None
    )
    name, password = user.text("username"), user.text("password")
    return {
        "certificate": user.part("client-certificate"),
        "key": user.part("client-key"),
        "token": token,
        "basic": f"{name}:{password}" if name or password else "",
        "plugin": _plugin(user),
        "impersonate": _impersonation(user),
    }


def _impersonation(user: Entry) -> tuple[tuple[str, str], ...]:
    pairs = [("Impersonate-User", user.text("as"))] if user.text("as") else []
    pairs += [("Impersonate-Uid", user.text("as-uid"))] if user.text("as-uid") else []
    pairs += [("Impersonate-Group", group) for group in user.texts("as-groups")]
    extra = user.child("as-user-extra")
    if extra:
        pairs += [(f"Impersonate-Extra-{key}", value) for key in extra.fields for value in extra.texts(key)]
    if pairs and not user.text("as"):
        raise BadCredentials(f"{user.where('as')} is missing, but other as-… fields are set")
    return tuple(pairs)


def _plugin(user: Entry) -> Plugin | None:
    spec = user.child("exec")
    if spec is None:
        return None
    command, api_version = spec.text("command"), spec.text("apiVersion")
    if not command:
        raise BadCredentials(f"{spec.where('command')} is missing")
    if api_version not in EXEC_VERSIONS:
        raise BadCredentials(f"{spec.where('apiVersion')} must be {' or '.join(EXEC_VERSIONS)}")
    if "/" in command:
        command = str((user.folder / command).absolute())
    variables = spec.mappings("env")
    if not all(item.get("name") for item in variables):
        raise BadCredentials(f"{spec.where('env')} has an entry without a name")
    return Plugin(
        command=command,
        args=spec.texts("args"),
        env={str(item["name"]): str(item.get("value", "")) for item in variables},
        api_version=api_version,
        install_hint=" ".join(spec.text("installHint").split()),
        provide_cluster_info=spec.flag("provideClusterInfo"),
        needs_terminal=spec.text("interactiveMode") == "Always",
        origin=spec.where("command"),
    )


def _find(files: Sequence[Entry], collection: str, name: str, inner: str) -> Entry | None:
    return next((found for file in files if (found := file.named(collection, name, inner))), None)


def _referred(files: Sequence[Entry], chosen: Entry, field: str, collection: str) -> Entry:
    name = chosen.text(field)
    found = _find(files, collection, name, field) if name else None
    if found is None:
        raise BadCredentials(f'{chosen.where(field)} is "{name}", which is not among {collection}')
    return found


def _names(files: Sequence[Entry], collection: str) -> list[str]:
    return sorted({str(item.get("name")) for file in files for item in file.mappings(collection)})


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCredentials(f"cannot read the kubeconfig {path}: {error.strerror}") from None


def _parse(text: bytes | str, origin: str, folder: Path) -> Entry:
    try:
        fields = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise BadCredentials(f"{origin} is not YAML{line}: {getattr(error, 'problem', None) or 'unreadable'}") from None
    if not isinstance(fields, Mapping):
        raise BadCredentials(f"{origin} is not a kubeconfig: it holds no mapping")
    return Entry(fields, "", origin, folder)
