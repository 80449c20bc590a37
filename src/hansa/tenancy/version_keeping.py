"""Which ClusterVersion a control plane should have: the one it was made of, until somebody asks for an upgrade.

A copy lies in the root namespace, so a ClusterVersion that is changed or deleted harms nobody who runs on it.
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
    """The ClusterVersion that is asked for is not there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to bring the control plane to. `missing` is a sentence if that is not what the VirtualCluster asks for."""

    version: ClusterVersion
    is_new: bool
    missing: str = ""


def choose(vc: VirtualCluster, live: ClusterVersion | None, kept: ClusterVersion | None) -> Choice:
    """Decide between the version that is asked for and the one that it runs on. Pure."""
    name = vc.spec.cluster_version_name
    missing = f'there is no ClusterVersion "{name}"; create it, or name another one in spec.clusterVersionName'
    if live is None and kept is None:
        raise MissingVersion(missing)
    if live is None:
        assert kept is not None
        return Choice(kept, is_new=False, missing=missing)
    if kept is None or kept.name != name:
        return Choice(live, is_new=True)
    # What never ran has nothing to lose: a version that was mended is taken at once.
    has_run = keys.VERSION_APPLIED in vc.object.labels
    is_asked = not has_run or vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true"
    return Choice(live, is_new=True) if is_asked and live.version != kept.version else Choice(kept, is_new=False)


async def read(client: Client, root: str) -> ClusterVersion | None:
    """The version that a control plane is brought to, if one was chosen before."""
    try:
        found = await client.get(resources.CONFIG_MAPS, COPY, namespace=root)
    except errors.NotFound:
        return None
    try:
        return api.cluster_version(Object.parse(found.get("data", {}).get("object", "")))
    except (ValueError, BadVirtualCluster) as error:
        log.warning("a copy of a ClusterVersion cannot be read", extra={"namespace": root, "error": str(error)})
        return None


async def keep(client: Client, root: str, version: ClusterVersion) -> None:
    """Remember the choice before anything is done, so that a crash in the middle goes on with it."""
    text = version.object.to_json().decode()
    metadata = {"name": COPY, "namespace": root}
    wanted = Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"object": text}})
    await client.apply(resources.CONFIG_MAPS, wanted, field_manager="hansa-vc-manager", force=True)
