"""The folder that remembers local clusters: what each should be, and the numbers that were given to it.

What runs is not remembered here: the kernel knows (`process`). A cluster's folder goes last when it is removed.
"""

import contextlib
import os
import pwd
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hansa.local import files
from hansa.local.spec import ClusterSpec
from hansa.runtime.errors import HansaError

LOCK_SECONDS = 300.0
# The longest path that a Unix socket can have, less what stands below the state folder.
LONGEST_ROOT = 107 - len("/etcd/client.sock")


class UnknownCluster(HansaError):
    """No cluster of that name is there."""


class UnusableState(HansaError):
    """The state folder cannot be used."""


class Record(msgspec.Struct, frozen=True):
    """A cluster as it should be, with what was allotted to it. `is_leaving` marks a removal that has begun."""

    spec: ClusterSpec
    slot: int
    ports: dict[str, int]
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """A state folder. Two of them never meet."""

    root: Path

    @property
    def etcd(self) -> Path:
        """The folder of the etcd that the clusters share."""
        return self.root / "etcd"

    def folder(self, name: str) -> Path:
        """Where everything about one cluster lies."""
        return self.root / "clusters" / name

    def records(self) -> list[Record]:
        """All clusters, by name."""
        return [self._read(path) for path in sorted(self.root.glob("clusters/*/cluster.json"))]

    def find(self, name: str) -> Record | None:
        """The cluster of that name, if it is known."""
        path = self.folder(name) / "cluster.json"
        return self._read(path) if path.exists() else None

    def get(self, name: str) -> Record:
        """The cluster of that name."""
        if (record := self.find(name)) is not None:
            return record
        known = ", ".join(r.spec.name for r in self.records()) or "none"
        raise UnknownCluster(f'there is no local cluster "{name}" (known: {known})')

    def save(self, record: Record) -> None:
        """Remember a cluster."""
        path = self.folder(record.spec.name) / "cluster.json"
        files.write(path, msgspec.json.format(msgspec.json.encode(record), indent=2))

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Held while numbers are allotted and while the shared etcd is started or ended."""
        return files.lock(self.root / "lock", deadline=LOCK_SECONDS)

    def cluster_lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held while one cluster is brought up or down."""
        return files.lock(self.root / "locks" / name, deadline=LOCK_SECONDS)

    def vanish(self, name: str) -> None:
        """Remove a cluster's lock, and the folder itself if nobody is about to use it; the caller holds both locks."""
        with contextlib.suppress(OSError):
            (self.root / "locks" / name).unlink()
            (self.root / "locks").rmdir()
            (self.root / "clusters").rmdir()
            (self.root / "lock").unlink()
            self.root.rmdir()

    def _read(self, path: Path) -> Record:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except (msgspec.DecodeError, OSError) as error:
            raise UnusableState(
                f"cannot read {path} ({error}); if it cannot be mended, end its processes"
                f' with "hansa local down {path.parent.name}"'
            ) from error


def open_state(root: Path | None = None, env: Mapping[str, str] = os.environ) -> State:
    """The state folder that the user named, or the usual one; it is made when something is written."""
    root = (root or _default_root(env)).absolute()
    if len(os.fsencode(root)) > LONGEST_ROOT:
        raise UnusableState(
            f"the state folder {root} has too long a path: sockets in it allow {LONGEST_ROOT} characters"
        )
    try:
        owner = root.stat().st_uid
    except FileNotFoundError:
        return State(root)
    except OSError as error:
        raise UnusableState(f"cannot use the state folder {root}: {error.strerror}") from error
    if not root.is_dir():
        raise UnusableState(f"the state folder {root} is not a folder")
    if owner != os.getuid():
        raise UnusableState(f"the state folder {root} belongs to {_user_name(owner)}; name another one with --state")
    return State(root)


def _default_root(env: Mapping[str, str]) -> Path:
    if named := env.get("HANSA_STATE"):
        return Path(named)
    return Path(env.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hansa"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
