"""Chooses the ClusterVersion of a control plane: the one it was created with, until an upgrade is requested.

A copy is kept in the root namespace, so that changing or deleting a ClusterVersion does not affect tenants that use it.
"""

import logging
from dataclasses import dataclass

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.tenancy import api
from hansa.tenancy.api import BadVirtualCluster, ClusterVersion, VirtualCluster

log = logging.getLogger(__name__)
COPY = "cluster-version"


class MissingVersion(BadVirtualCluster):
    """The ClusterVersion in spec.clusterVersionName does not exist."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The version to apply. `missing` is a message if the requested one does not exist and the kept one stays."""

    version: ClusterVersion
    is_new: bool
    missing: str = ""


def choose(vc: VirtualCluster, live: ClusterVersion | None, kept: ClusterVersion | None) -> Choice:
    """Choose between the requested version and the one that is applied. Pure."""
    name = vc.spec.cluster_version_name
    missing = f'ClusterVersion "{name}" not found; create it, or set spec.clusterVersionName to an existing one'
    if live is None and kept is None:
        raise MissingVersion(missing)
    if live is None:
        assert kept is not None
        return Choice(kept, is_new=False, missing=missing)
    if kept is None or kept.name != name:
        return Choice(live, is_new=True)
    # A control plane that never ran needs no upgrade request: a corrected version is used at once.
    has_run = keys.VERSION_APPLIED in vc.object.labels
    is_requested = not has_run or vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true"
    return Choice(live, is_new=True) if is_requested and live.version != kept.version else Choice(kept, is_new=False)


async def read(client: Client, root: str) -> ClusterVersion | None:
    """The version that was chosen before, if any."""
    try:
        found = await client.get(resources.CONFIG_MAPS, COPY, namespace=root)
    except errors.NotFound:
        return None
    try:
        return api.cluster_version(Object.parse(found.get("data", {}).get("object", "")))
    except (ValueError, BadVirtualCluster) as error:
        log.warning("ClusterVersion copy unreadable", extra={"namespace": root, "error": str(error)})
        return None


async def keep(client: Client, root: str, version: ClusterVersion) -> None:
    """Store the choice before it is applied, so that a reconcile after a crash continues with it."""
    text = version.object.to_json().decode()
    metadata = {"name": COPY, "namespace": root}
    wanted = Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"object": text}})
    await client.apply(resources.CONFIG_MAPS, wanted, field_manager="hansa-vc-manager", force=True)
