"""The clusters behind virtual nodes, from the file of `hansa multi-scheduler` or that of `hansa virtual-node`.

Used by commands that only read these clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from hansa.kube.credentials.source import CredentialSource
from hansa.model import keys
from hansa.modes import multi_scheduler_file, tensile_file
from hansa.modes.tensile_settings import InvalidSettings


@dataclass(frozen=True, slots=True)
class LowerClusters:
    """The upper cluster, and the lower ones by the names that virtual nodes have for them."""

    upper: CredentialSource
    lowers: Mapping[str, CredentialSource]


def read(path: Path) -> LowerClusters:
    """Read the file, whichever of both it is."""
    if _is_of_virtual_nodes(path):
        settings = tensile_file.read(path)
        names = {one.node.labels.get(keys.CLUSTER_ID) or one.node.lower: one.source for one in settings.lowers}
        return LowerClusters(settings.upper, names)
    found = multi_scheduler_file.read(path)
    return LowerClusters(found.upper, found.lowers)


def _is_of_virtual_nodes(path: Path) -> bool:
    try:
        described = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidSettings(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return isinstance(described, dict) and "lowers" in described
