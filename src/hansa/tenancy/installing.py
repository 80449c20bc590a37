"""Installs the CustomResourceDefinitions of tenants in a meta cluster, and sample ClusterVersions.

vc-manager, vc-scheduler and vc-syncer use it at their start. Definitions are updated; existing ClusterVersions are not.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import yaml

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import CLUSTER_VERSIONS

MANAGER = "hansa-vc-manager"
ESTABLISHED_SECONDS = 60.0
POLL_SECONDS = 0.1  # a definition is served within a second of its creation


def definitions() -> list[Object]:
    """The CustomResourceDefinitions."""
    return [
        Object.of(yaml.safe_load(path.read_text())) for path in sorted((Path(__file__).parent / "crds").glob("*.yaml"))
    ]


async def install(client: Client, versions: Iterable[Object] = ()) -> None:
    """Apply the definitions, wait until they are served, and create the ClusterVersions that are missing."""
    crds = definitions()
    for crd in crds:
        await client.apply(resources.CUSTOM_RESOURCE_DEFINITIONS, crd, field_manager=MANAGER, force=True)
    for crd in crds:
        await _established(client, crd.name)
    for version in versions:
        await _ensure(client, version)


async def _ensure(client: Client, version: Object) -> None:
    # An administrator may have changed an existing one.
    try:
        await client.create(CLUSTER_VERSIONS, version, field_manager=MANAGER)
    except errors.AlreadyExists:
        return


async def _established(client: Client, name: str) -> None:
    try:
        async with asyncio.timeout(ESTABLISHED_SECONDS):
            while not _is_established(await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, name)):
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise HansaError(
            f"CustomResourceDefinition {name} is not Established after {ESTABLISHED_SECONDS:.0f} s; see its conditions"
        ) from None


def _is_established(crd: Object) -> bool:
    conditions = crd.status.get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
