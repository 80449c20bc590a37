"""The state folder of one tenant's control plane: port, keys, logs and data.

Which processes run is not recorded here: the process table knows (docs/decisions/0001).
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from hansa.kube.objects import Object
from hansa.programs import files
from hansa.programs.files import UnusableState
from hansa.tenancy import api
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.operator import pki
from hansa.tenancy.operator.pki import CONTEXT, Pki

PAIRS = (pki.ROOT, pki.APISERVER, pki.FRONT_PROXY, pki.SERVICE_ACCOUNTS, pki.CONTROLLER_MANAGER)
# The longest path of a Unix socket, less the longest one below the state folder.
LONGEST_STATE = 107 - len("/tenants/0123456789/etcd/client.sock")


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where vc-manager found the meta cluster, to tell later whether it still exists."""

    server: str = ""
    kubeconfig: tuple[str, ...] = ()  # absolute paths
    context: str = ""


class Record(msgspec.Struct, frozen=True):
    """The VirtualCluster of a control plane, its API server's port, and the kind of etcd that holds its objects."""

    meta: str
    namespace: str
    name: str
    uid: str
    root: str
    port: int
    is_etcd_shared: bool
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths of one control plane."""

    path: Path

    @property
    def id(self) -> str:
        """The cluster name in the identity of its processes."""
        return self.path.name

    @property
    def etcd(self) -> Path:
        """The folder of its own etcd."""
        return self.path / "etcd"

    def log(self, component: str) -> Path:
        """The log file of a component."""
        return self.path / "log" / f"{component}.log"

    def certificate(self, name: str) -> Path:
        """A certificate, or a public key."""
        return self.path / "pki" / f"{name}.crt"

    def key(self, name: str) -> Path:
        """A private key."""
        return self.path / "pki" / f"{name}.key"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the controller-manager."""
        return self.path / "controller-manager.kubeconfig"

    def record(self) -> Record | None:
        """The record, or None if it is missing or unreadable."""
        try:
            return msgspec.json.decode((self.path / "tenant.json").read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def save(self, record: Record) -> None:
        """Write the record."""
        files.write(self.path / "tenant.json", msgspec.json.format(msgspec.json.encode(record), indent=2))

    def write_keys(self, keys: Pki, server: str) -> None:
        """Write keys and certificates; running programs reload them."""
        for name in PAIRS:
            files.write(self.key(name), keys[name].key)
            files.write(self.certificate(name), keys[name].certificate)
        files.write(self.kubeconfig, yaml.safe_dump(self._kubeconfig(server), sort_keys=False))

    def _kubeconfig(self, server: str) -> dict[str, object]:
        # It refers to files, so that a renewed certificate is used without a restart.
        user = {
            "client-certificate": str(self.certificate(pki.CONTROLLER_MANAGER)),
            "client-key": str(self.key(pki.CONTROLLER_MANAGER)),
        }
        cluster = {"server": server, "certificate-authority": str(self.certificate(pki.ROOT))}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": CONTEXT, "cluster": cluster}],
            "users": [{"name": CONTEXT, "user": user}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
            "current-context": CONTEXT,
        }


def folder(state: Path, vc: VirtualCluster) -> Folder:
    """The folder of a VirtualCluster's control plane. Its name is short, since paths of sockets are limited."""
    return Folder(state / "tenants" / hashlib.sha256(vc.uid.encode()).hexdigest()[:10])


def folders(state: Path) -> list[Folder]:
    """The folders of all tenants."""
    return [Folder(path) for path in sorted((state / "tenants").glob("*")) if path.is_dir()]


def owner(record: Record) -> VirtualCluster:
    """The VirtualCluster of a folder, with the fields that the record has."""
    metadata = {"namespace": record.namespace, "name": record.name, "uid": record.uid}
    return api.virtual_cluster(Object.of({"metadata": metadata, "status": {"clusterNamespace": record.root}}))


def check_state(state: Path) -> None:
    """Refuse a state folder whose path is too long for the sockets in it."""
    if len(str(state).encode()) > LONGEST_STATE:
        raise UnusableState(
            f"--state {state} is too long for Unix sockets below it: use a path of at most {LONGEST_STATE} bytes"
        )
