"""The credentials of a tenant as its VirtualCluster gives them: an annotation, or a Secret of its root namespace.

Only what stands in the kubeconfig itself is taken: who may write a VirtualCluster must not choose which files the
syncer reads, nor which programs it runs.
"""

from dataclasses import dataclass, field, replace

from hansa.kube.credentials import Credentials, kubeconfig
from hansa.kube.credentials.login import Login, base64_text
from hansa.kube.errors import BadCredentials
from hansa.kube.objects import Object
from hansa.model import keys

SECRET = "admin-kubeconfig"  # noqa: S105 - a name
SECRET_KEY = SECRET
NAMED_SECRET_KEY = "value"  # noqa: S105 - what Cluster API writes


@dataclass(frozen=True, slots=True)
class Given:
    """A kubeconfig in base64, and where it stands."""

    encoded: str = field(repr=False)
    origin: str

    def login(self) -> Login:
        """What it says."""
        found = kubeconfig.parse(base64_text(self.encoded, self.origin).read(), origin=self.origin)
        if found.plugin is not None or found.watched_files():
            raise BadCredentials(f"{self.origin} names files or a program: a tenant's kubeconfig must hold all data")
        return replace(found, server=_unbracketed(found.server))


class TenantCredentials(Credentials):
    """The way into a tenant; `observe` takes newer versions, which the next request uses."""

    def __init__(self, given: Given) -> None:
        self._given = given
        super().__init__(self._read_login)

    def observe(self, given: Given) -> None:
        """Take what is given now."""
        if given != self._given:
            self._given = given
            self.expire()

    def _read_login(self) -> Login:
        return self._given.login()


def secret_of(vc: Object) -> str:
    """The name of the Secret that holds the kubeconfig; empty if the VirtualCluster itself does."""
    if vc.annotations.get(keys.ADMIN_KUBECONFIG):
        return ""
    return vc.annotations.get(keys.ADMIN_KUBECONFIG_SECRET) or SECRET


def given(vc: Object, secret: Object | None) -> Given | None:
    """The kubeconfig of a VirtualCluster, if it is there yet; `secret` is the one that `secret_of` names."""
    if encoded := vc.annotations.get(keys.ADMIN_KUBECONFIG):
        return Given(encoded, f"annotation {keys.ADMIN_KUBECONFIG} of VirtualCluster {vc.key}")
    data: dict[str, str] = (secret.get("data") if secret else None) or {}
    for key in (SECRET_KEY, NAMED_SECRET_KEY) if secret else ():
        if key in data:
            return Given(data[key], f"key {key} of secret {secret.key if secret else ''}")
    return None


def _unbracketed(server: str) -> str:
    """Upstream's manager writes `https://[name]:6443`, which is no address unless the name is one of IPv6."""
    before, open_, rest = server.partition("[")
    inside, close, after = rest.partition("]")
    return f"{before}{inside}{after}" if open_ and close and ":" not in inside else server
