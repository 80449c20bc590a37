"""The ClusterVersions that the manager installs: one control plane, served by a NodePort or by a LoadBalancer."""

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
    """The sample control plane as a ClusterVersion of that name, whose API server has a Service of that type."""
    manifest: dict[str, Any] = yaml.safe_load(CONTROL_PLANE.read_bytes())
    manifest["metadata"]["name"] = name
    manifest["spec"]["apiServer"]["service"]["spec"]["type"] = service_type
    return Object.of(manifest)
