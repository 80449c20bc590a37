"""The manifests of a super cluster that joins a pool, for itself and for the meta cluster. Pure.

`hansa join` writes or applies them.
"""

import base64
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from hansa.kube.credentials.login import Login
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.tenancy.pool import cluster_id

ACCOUNT: Final = NamespacedName("hansa-system", "hansa-pool")  # our service account in a super cluster
TOKEN: Final = NamespacedName("hansa-system", "hansa-pool-token")
SYNCER_NAMESPACE: Final = "vc-manager"
SECRET_KEY: Final = "admin-kubeconfig"  # noqa: S105 - a name
PROVISIONED: Final = "Provisioned"
AGENT_FILE: Final = "super-agent.yaml"
SUPER_FILES: Final = frozenset({"cluster-id.yaml", AGENT_FILE})
_MANIFESTS: Final = Path(__file__).parent / "manifests"


@dataclass(frozen=True, slots=True)
class Joined:
    """The data of a super cluster that joins: its id, the namespace of its Cluster, and its kubeconfig."""

    id: str
    namespace: str
    uid: str  # of namespace kube-system: it identifies the cluster
    kubeconfig: str = field(repr=False)
    image: str
    clusters: Resource

    def files(self, *, has_syncer: bool = True, has_agent: bool = False) -> dict[str, list[Object]]:
        """The objects by file name: those in SUPER_FILES for the super cluster, the others for the meta cluster."""
        made = {
            "cluster-cr.yaml": [self.cluster()],
            "cluster-id.yaml": [cluster_id.config_map(self.id)],
            "secret-for-scheduler.yaml": [_secret(self.namespace, self.id, SECRET_KEY, self.kubeconfig)],
        }
        if has_syncer:
            secret = _secret(SYNCER_NAMESPACE, syncer_secret(self.id), "config", self.kubeconfig)
            made |= {"secret-for-vc-syncer.yaml": [secret], "vc-syncer.yaml": self._syncer()}
        if has_agent:
            made[AGENT_FILE] = agent(self.image)
        return made

    def cluster(self) -> Object:
        """The Cluster."""
        metadata = {"namespace": self.namespace, "name": self.id, "annotations": {keys.SUPER_UID: self.uid}}
        kind = {"apiVersion": self.clusters.api_version, "kind": self.clusters.kind}
        return Object.of({**kind, "metadata": metadata, "spec": {}, "status": {"phase": PROVISIONED}})

    def _syncer(self) -> list[Object]:
        text = string.Template(_manifest("vc-syncer.yaml")).substitute(id=self.id, image=self.image)
        return [*_objects(_manifest("vc-syncer-rights.yaml")), *_objects(text)]


def account() -> list[Object]:
    """Our service account in a super cluster, its RBAC objects and its token Secret."""
    return [*_objects(_manifest("super-account.yaml")), *_objects(_manifest("super-rights.yaml"))]


def agent(image: str = "") -> list[Object]:
    """The agent of a super cluster, and its RBAC objects."""
    return _objects(string.Template(_manifest(AGENT_FILE)).substitute(image=image))


def syncer_name(id_: str) -> str:
    """The name of the Deployment of vc-syncer for one super cluster."""
    return f"vc-syncer-{id_}"


def syncer_secret(id_: str) -> str:
    """The name of the Secret with the syncer's kubeconfig of the super cluster."""
    return f"cluster-{id_}-config"


def kubeconfig(id_: str, login: Login, token: str) -> str:
    """A kubeconfig with the server of a login and this token."""
    cluster: dict[str, Any] = {"server": login.server}
    if login.ca is not None:
        cluster["certificate-authority-data"] = base64.b64encode(login.ca.read()).decode()
    more = {"tls-server-name": login.server_name, "proxy-url": login.proxy}
    cluster |= {name: value for name, value in more.items() if value}
    if login.skip_verify:
        cluster["insecure-skip-tls-verify"] = True
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": id_, "cluster": cluster}],
        "users": [{"name": ACCOUNT.name, "user": {"token": token}}],
        "contexts": [{"name": id_, "context": {"cluster": id_, "user": ACCOUNT.name}}],
        "current-context": id_,
    }
    return yaml.safe_dump(config, sort_keys=False)


def dumped(objects: Iterable[Object]) -> str:
    """Objects as YAML documents."""
    return yaml.safe_dump_all((one.to_dict() for one in objects), sort_keys=False)


def _secret(namespace: str, name: str, key: str, text: str) -> Object:
    data: Mapping[str, str] = {key: base64.b64encode(text.encode()).decode()}
    metadata = {"namespace": namespace, "name": name}
    return Object.of({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data})


def _manifest(name: str) -> str:
    return (_MANIFESTS / name).read_text()


def _objects(text: str) -> list[Object]:
    return [Object.of(one) for one in yaml.safe_load_all(text)]
