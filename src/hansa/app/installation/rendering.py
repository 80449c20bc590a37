"""The manifests of an installation: rendered from the Helm chart by `tools/render-manifests`, and stamped here.

Placeholders stand for the namespace and the image.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys

NAMESPACE: Final = "placeholder-namespace"
IMAGE: Final = "placeholder-image:tag"
FOLDER: Final = Path(__file__).parent / "manifests"
KINDS: Final = {
    one.kind: one
    for one in (
        *(resources.NAMESPACES, resources.CUSTOM_RESOURCE_DEFINITIONS, resources.SERVICE_ACCOUNTS, resources.SECRETS),
        *(resources.CLUSTER_ROLES, resources.CLUSTER_ROLE_BINDINGS, resources.ROLES, resources.ROLE_BINDINGS),
        *(resources.SERVICES, resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.CONFIG_MAPS),
        *(resources.NETWORK_POLICIES, resources.POD_DISRUPTION_BUDGETS),
    )
}


class Mode(StrEnum):
    """What a cluster is for."""

    VIRTUALCLUSTER = "virtualcluster"
    POOL = "pool"
    TENSILE = "tensile"
    TENSILE_LOWER = "tensile-lower"
    ADMIRALTY = "admiralty"


DEFAULT_NAMESPACES: Final = {
    Mode.VIRTUALCLUSTER: "vc-manager",
    Mode.POOL: "vc-manager",
    Mode.TENSILE: "hansa-system",
    Mode.TENSILE_LOWER: "hansa-system",
    Mode.ADMIRALTY: "admiralty",
}


@dataclass(frozen=True, slots=True)
class Installation:
    """What is installed: a mode in a namespace."""

    mode: Mode
    namespace: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.mode}"

    def objects(self, image: str) -> list[Object]:
        """All objects, stamped, in the order in which they are created."""
        text = (FOLDER / f"{self.mode}.yaml").read_text()
        text = text.replace(NAMESPACE, self.namespace).replace(IMAGE, image)
        return [self.stamped(Object.of(one)) for one in yaml.safe_load_all(text) if one]

    def stamped(self, obj: Object) -> Object:
        """The object with the label and annotation by which it is known."""
        labels = {**obj.labels, keys.INSTALLED: str(self.mode), "app.kubernetes.io/managed-by": "hansa-install"}
        return obj.with_metadata(labels=labels, annotations={**obj.annotations, keys.INSTALLATION: str(self)})


def resource(obj: Object) -> Resource:
    """The resource of an object."""
    return KINDS[obj.kind]


def named(obj: Object) -> str:
    """How an object is called in messages."""
    return f"{obj.kind} {obj.key}"
