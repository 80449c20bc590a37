"""The folder of one tenant's control plane: numbers, keys, logs and data. What runs is known by the kernel alone."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from hansa.kube.objects import Object
from hansa.local import files
from hansa.local.state import UnusableState
from hansa.tenancy import api, pki
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.pki import CONTEXT, Pki

PAIRS = (pki.ROOT, pki.APISERVER, pki.FRONT_PROXY, pki.SERVICE_ACCOUNTS, pki.CONTROLLER_MANAGER)
# The longest path that a Unix socket can have, less what stands below the state folder.
LONGEST_STATE = 107 - len("/tenants/0123456789/etcd/client.sock")


class Record(msgspec.Struct, frozen=True):
    """Whose control plane it is, the port that its API server was given, and where its objects are for good."""

    meta: str
    namespace: str
    name: str
    uid: str
    root: str
    port: int
    is_etcd_shared: bool


@dataclass(frozen=True, slots=True)
class Folder:
    """Where one control plane keeps everything."""

    path: Path

    @property
    def id(self) -> str:
        """What its processes are marked with."""
        return self.path.name

    @property
    def etcd(self) -> Path:
        """The folder of its own etcd."""
        return self.path / "etcd"

    def log(self, component: str) -> Path:
        """What a component prints."""
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
        """What was given to it, if it can be read."""
        try:
            return msgspec.json.decode((self.path / "tenant.json").read_bytes(), type=Record)
        except (OSError, msgspec.DecodeError):
            return None

    def save(self, record: Record) -> None:
        """Remember what was given to it."""
        files.write(self.path / "tenant.json", msgspec.json.format(msgspec.json.encode(record), indent=2))

    def write_keys(self, keys: Pki, server: str) -> None:
        """Write the keys where the programs read them, also again while they run: they notice."""
        for name in PAIRS:
            files.write(self.key(name), keys[name].key)
            files.write(self.certificate(name), keys[name].certificate)
        files.write(self.kubeconfig, yaml.safe_dump(self._kubeconfig(server), sort_keys=False))

    def _kubeconfig(self, server: str) -> dict[str, object]:
        # It names files, and not their content, so that a new certificate is used without a restart.
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
    """The folder of a VirtualCluster's control plane: short, since sockets in it have to be."""
    return Folder(state / "tenants" / hashlib.sha256(vc.uid.encode()).hexdigest()[:10])


def folders(state: Path) -> list[Folder]:
    """All that are there."""
    return [Folder(path) for path in sorted((state / "tenants").glob("*")) if path.is_dir()]


def owner(record: Record) -> VirtualCluster:
    """The VirtualCluster that a folder was made for, as far as it is remembered."""
    metadata = {"namespace": record.namespace, "name": record.name, "uid": record.uid}
    return api.virtual_cluster(Object.of({"metadata": metadata, "status": {"clusterNamespace": record.root}}))


def check_state(state: Path) -> None:
    """Refuse a state folder in which sockets would have too long a path."""
    if len(str(state).encode()) > LONGEST_STATE:
        raise UnusableState(f"the state folder {state} has too long a path: {LONGEST_STATE} characters are allowed")
