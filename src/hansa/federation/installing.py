"""Installs what an agent needs in its cluster: definitions, ClusterRoles of sources, a policy for DaemonSets."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from hansa.kube import definitions as crds
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys

log = logging.getLogger(__name__)
MANAGER: Final = "hansa-agent"
FOLDER: Final = Path(__file__).parent
_ADMISSION = "admissionregistration.k8s.io"
POLICIES: Final = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicies", kind="ValidatingAdmissionPolicy", namespaced=False
)
POLICY_BINDINGS: Final = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", kind="ValidatingAdmissionPolicyBinding", namespaced=False
)
KINDS: Final = {one.kind: one for one in (resources.CLUSTER_ROLES, POLICIES, POLICY_BINDINGS)}


def definitions() -> list[Object]:
    """The CustomResourceDefinitions."""
    return crds.read(FOLDER / "crds")


def manifests() -> Iterable[tuple[Resource, Object]]:
    """Other objects of the cluster: roles of sources, and the policy for DaemonSets."""
    for path in sorted((FOLDER / "manifests").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            yield KINDS[document["kind"]], Object.of(document)


def custom_resources() -> Iterable[tuple[Resource, Object]]:
    """The definitions with their resource."""
    return ((resources.CUSTOM_RESOURCE_DEFINITIONS, one) for one in definitions())


def multicluster_definitions() -> list[Object]:
    """Those of the Multi-Cluster Services API, labelled as ours. Others may install them, too."""
    found = crds.read(FOLDER / "multicluster_crds")
    return [one.with_metadata(labels={keys.MANAGED_BY: MANAGER}) for one in found]


async def install(client: Client) -> None:
    """Apply everything, and wait until the definitions are served."""
    missing = [one for one in multicluster_definitions() if not await _exists(client, one)]
    await crds.install(client, [*definitions(), *missing], field_manager=MANAGER)
    for resource, obj in manifests():
        try:
            await client.apply(resource, obj, field_manager=MANAGER, force=True)
        except errors.NotFound as error:  # Kubernetes before 1.30
            log.warning(
                "not installed, since the API server is too old", extra={"object": str(resource), "error": str(error)}
            )


async def _exists(client: Client, definition: Object) -> bool:
    try:
        await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, definition.name)
    except errors.NotFound:
        return False
    return True
