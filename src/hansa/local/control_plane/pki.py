"""The certificates and kubeconfigs of one cluster as files. Missing files are created, existing ones are kept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject
from hansa.local.control_plane import kubeconfig
from hansa.programs import files

CLIENTS = {
    "admin": Subject("hansa-local-admin", ("system:masters",)),
    "kwok": Subject("hansa-local-kwok", ("system:masters",)),
    "kubelet-client": Subject("kube-apiserver-kubelet-client", ("system:masters",)),
    "kube-controller-manager": Subject("system:kube-controller-manager"),
    "kube-scheduler": Subject("system:kube-scheduler"),
    "kube-proxy": Subject("system:kube-proxy"),
}
FRONT_PROXY = Subject("front-proxy-client")
WITH_KUBECONFIG = ("kwok", "kube-controller-manager", "kube-scheduler", "kube-proxy")
SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


@dataclass(frozen=True, slots=True)
class Pki:
    """The folder of a cluster's certificates and keys."""

    folder: Path

    def certificate(self, name: str) -> Path:
        """The certificate (or public key) of that name."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """The private key of that name."""
        return self.folder / f"{name}.key"

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of a client of that name."""
        return self.folder / f"{name}.kubeconfig"

    def ensure(self, server: str, *, addresses: tuple[str, ...], now: datetime) -> None:
        """Create the missing files of a control plane with that URL, whose certificate covers the addresses."""
        ca = self._ensure("ca", partial(certificates.authority, "hansa-local", now))
        front = self._ensure("front-proxy-ca", partial(certificates.authority, "hansa-local-front-proxy", now))
        self._ensure("service-accounts", certificates.signing_pair)
        self._ensure("front-proxy-client", partial(certificates.issue, front, FRONT_PROXY, now))
        names = (*SERVER_NAMES, *addresses)
        self._issue(ca, {"kube-apiserver": Subject("kube-apiserver", names=names), **CLIENTS}, now)
        for name in WITH_KUBECONFIG:
            self.write_kubeconfig(self.kubeconfig(name), server, user=name)

    def ensure_node(self, node: str, server: str, *, address: str, now: datetime) -> None:
        """Create the client certificate, server certificate and kubeconfig of a real kubelet."""
        client = Subject(f"system:node:{node}", ("system:nodes",))
        subjects = {f"node-{node}": client, f"kubelet-{node}": Subject(node, names=(node, address))}
        self._issue(self._read("ca"), subjects, now)
        self.write_kubeconfig(self.kubeconfig(f"node-{node}"), server, user=f"node-{node}")

    def write_kubeconfig(self, path: Path, server: str, *, user: str, name: str = "local") -> None:
        """Write a kubeconfig for one of the clients."""
        config = kubeconfig.make(name, server, ca=self._read("ca").certificate, user=self._read(user))
        files.write(path, kubeconfig.dump(config))

    def _issue(self, ca: KeyPair, subjects: Mapping[str, Subject], now: datetime) -> None:
        for name, subject in subjects.items():
            self._ensure(name, partial(certificates.issue, ca, subject, now))

    def _ensure(self, name: str, make: Callable[[], KeyPair]) -> KeyPair:
        # The certificate is written last, so its existence means that the key exists.
        if not self.certificate(name).exists():
            pair = make()
            files.write(self.key(name), pair.key)
            files.write(self.certificate(name), pair.certificate)
        return self._read(name)

    def _read(self, name: str) -> KeyPair:
        return KeyPair(self.certificate(name).read_bytes(), self.key(name).read_bytes())
