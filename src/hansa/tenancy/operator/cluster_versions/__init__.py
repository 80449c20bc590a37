"""The sample ClusterVersions that vc-manager installs: one control plane, with a NodePort or a LoadBalancer Service."""

from pathlib import Path
from typing import Any

import yaml

from hansa.kube.objects import Object

CONTROL_PLANE = Path(__file__).parent / "control_plane.yaml"
SERVICE_TYPES = {"cv-sample-np": "NodePort", "cv-sample-lb": "LoadBalancer"}


def samples() -> tuple[Object, ...]:
    """cv-sample-np and cv-sample-lb."""
    return tuple(sample(name, service_type) for name, service_type in SERVICE_TYPES.items())


def sample(name: str, service_type: str) -> Object:
    """The sample ClusterVersion with this name and this type of the API server's Service."""
    manifest: dict[str, Any] = yaml.safe_load(CONTROL_PLANE.read_bytes())
    manifest["metadata"]["name"] = name
    manifest["spec"]["apiServer"]["service"]["spec"]["type"] = service_type
    return Object.of(manifest)
