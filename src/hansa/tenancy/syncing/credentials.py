"""The credentials of a tenant: the kubeconfig in an annotation of its VirtualCluster, or in a Secret.

A kubeconfig that refers to files or exec plugins is refused: a user who may write VirtualClusters must not choose which
files vc-syncer reads, or which programs it runs.
"""

from dataclasses import dataclass, field, replace

from hansa.kube.credentials import Credentials, kubeconfig
from hansa.kube.credentials.login import Login, base64_text
from hansa.kube.objects import Object
from hansa.model import keys

SECRET = "admin-kubeconfig"  # noqa: S105 - a name
SECRET_KEY = SECRET
NAMED_SECRET_KEY = "value"  # noqa: S105 - the key that Cluster API uses


@dataclass(frozen=True, slots=True)
class EncodedKubeconfig:
    """A kubeconfig in base64, and the object that it is from."""

    encoded: str = field(repr=False)
    origin: str

    def login(self) -> Login:
        """Parse it."""
        found = kubeconfig.parse(base64_text(self.encoded, self.origin).read(), origin=self.origin).embedded()
        return replace(found, server=_unbracketed(found.server))


class TenantCredentials(Credentials):
    """The credentials of a tenant; `observe` takes a newer kubeconfig, which the next request uses."""

    def __init__(self, found: EncodedKubeconfig) -> None:
        self._kubeconfig = found
        super().__init__(self._read_login)

    def observe(self, found: EncodedKubeconfig) -> None:
        """Use this kubeconfig from now on."""
        if found != self._kubeconfig:
            self._kubeconfig = found
            self.expire()

    def _read_login(self) -> Login:
        return self._kubeconfig.login()


def secret_of(vc: Object) -> str:
    """The name of the Secret with the kubeconfig; empty if an annotation of the VirtualCluster has it."""
    if vc.annotations.get(keys.ADMIN_KUBECONFIG):
        return ""
    return vc.annotations.get(keys.ADMIN_KUBECONFIG_SECRET) or SECRET


def find(vc: Object, secret: Object | None) -> EncodedKubeconfig | None:
    """The kubeconfig of a VirtualCluster, or None if it does not exist yet; `secret` is named by `secret_of`."""
    if encoded := vc.annotations.get(keys.ADMIN_KUBECONFIG):
        return EncodedKubeconfig(encoded, f"annotation {keys.ADMIN_KUBECONFIG} of VirtualCluster {vc.key}")
    data: dict[str, str] = (secret.get("data") if secret else None) or {}
    for key in (SECRET_KEY, NAMED_SECRET_KEY) if secret else ():
        if key in data:
            return EncodedKubeconfig(data[key], f"key {key} of Secret {secret.key if secret else ''}")
    return None


def _unbracketed(server: str) -> str:
    """Remove brackets around a host name: upstream's manager writes `https://[name]:6443` for any name."""
    before, open_, rest = server.partition("[")
    inside, close, after = rest.partition("]")
    return f"{before}{inside}{after}" if open_ and close and ":" not in inside else server
