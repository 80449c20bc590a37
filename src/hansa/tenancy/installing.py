"""Installs the CustomResourceDefinitions of tenants in a meta cluster, and sample ClusterVersions.

vc-manager, vc-scheduler and vc-syncer use it at their start. Definitions are updated; existing ClusterVersions are not.
"""

from collections.abc import Iterable
from pathlib import Path

from hansa.kube import definitions as crds
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.tenancy.api import CLUSTER_VERSIONS

MANAGER = "hansa-vc-manager"


def definitions() -> list[Object]:
    """The CustomResourceDefinitions."""
    return crds.read(Path(__file__).parent / "crds")


async def install(client: Client, versions: Iterable[Object] = ()) -> None:
    """Apply the definitions, wait until they are served, and create the ClusterVersions that are missing."""
    await crds.install(client, definitions(), field_manager=MANAGER)
    await add(client, versions)


async def add(client: Client, versions: Iterable[Object]) -> None:
    """Create the ClusterVersions that are missing."""
    for version in versions:
        await _ensure(client, version)


async def _ensure(client: Client, version: Object) -> None:
    # An administrator may have changed an existing one.
    try:
        await client.create(CLUSTER_VERSIONS, version, field_manager=MANAGER)
    except errors.AlreadyExists:
        return
