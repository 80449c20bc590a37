"""The state folder of local clusters: the specification of each, its allocated slot and ports, and locks.

Running processes are not recorded here: `programs.process` finds them. The folder of a cluster is removed last.
"""

import contextlib
import os
import pwd
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hansa.local.spec import ClusterSpec
from hansa.programs import files
from hansa.programs.files import UnusableState
from hansa.runtime.errors import HansaError

LOCK_SECONDS = 300.0
# The longest path of a Unix socket, less the part below the state folder.
LONGEST_ROOT = 107 - len("/etcd/client.sock")


class UnknownCluster(HansaError):
    """No cluster has that name."""


class Record(msgspec.Struct, frozen=True):
    """The specification of a cluster and its allocations. `is_deleting` is set when its deletion has begun."""

    spec: ClusterSpec
    slot: int
    ports: dict[str, int]
    is_deleting: bool = msgspec.field(default=False, name="is_leaving")


@dataclass(frozen=True, slots=True)
class State:
    """A state folder. Clusters of different state folders are independent."""

    root: Path

    @property
    def etcd(self) -> Path:
        """The folder of the etcd that the clusters share."""
        return self.root / "etcd"

    def folder(self, name: str) -> Path:
        """The folder of one cluster."""
        return self.root / "clusters" / name

    def records(self) -> list[Record]:
        """The records of all clusters, sorted by name."""
        return [self._read(path) for path in sorted(self.root.glob("clusters/*/cluster.json"))]

    def find(self, name: str) -> Record | None:
        """The record of the cluster, if it exists."""
        path = self.folder(name) / "cluster.json"
        return self._read(path) if path.exists() else None

    def get(self, name: str) -> Record:
        """The record of the cluster; raises UnknownCluster if it does not exist."""
        if (record := self.find(name)) is not None:
            return record
        known = ", ".join(r.spec.name for r in self.records()) or "none"
        raise UnknownCluster(f'there is no local cluster "{name}" (known: {known})')

    def save(self, record: Record) -> None:
        """Write the record of a cluster."""
        path = self.folder(record.spec.name) / "cluster.json"
        files.write(path, msgspec.json.format(msgspec.json.encode(record), indent=2))

    def lock(self) -> AbstractAsyncContextManager[None]:
        """Held while slots and ports are allocated and while the shared etcd is started or stopped."""
        return files.lock(self.root / "lock", deadline=LOCK_SECONDS)

    def cluster_lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held while one cluster is started or deleted."""
        return files.lock(self.root / "locks" / name, deadline=LOCK_SECONDS)

    def remove_locks(self, name: str = "") -> None:
        """Remove the lock of a cluster, and the state folder if it is empty then; the caller holds these locks."""
        with contextlib.suppress(OSError):
            if name:
                (self.root / "locks" / name).unlink(missing_ok=True)
            for folder in (self.root / "locks", self.root / "clusters"):
                if folder.exists():
                    folder.rmdir()
            if {path.name for path in self.root.iterdir()} == {"lock"}:
                (self.root / "lock").unlink()
                self.root.rmdir()

    def _read(self, path: Path) -> Record:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except (msgspec.DecodeError, OSError) as error:
            raise UnusableState(
                f"cannot read {path}: {error}; repair the file,"
                f' or delete the cluster with "hansa local down {path.parent.name}"'
            ) from error


def open_state(root: Path | None = None, env: Mapping[str, str] = os.environ) -> State:
    """The given state folder or the default one; it is created on the first write."""
    root = (root or _default_root(env)).absolute()
    if len(os.fsencode(root)) > LONGEST_ROOT:
        raise UnusableState(
            f"the path of state folder {root} is too long: Unix sockets in it allow {LONGEST_ROOT} characters"
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
        raise UnusableState(f"the state folder {root} belongs to {_user_name(owner)}; choose another with --state")
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
