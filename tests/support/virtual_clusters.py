"""VirtualClusters and ClusterVersions for tests, in the shape of upstream's samples."""

import base64
from typing import Any

from hansa.kube.objects import Object

API = "tenancy.x-k8s.io/v1alpha1"


def virtual_cluster(name: str, namespace: str, /, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A VirtualCluster as a user creates it; the keywords are fields of its spec."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = annotations
    wanted = {"clusterVersionName": "cv-sample-np", **spec}
    return Object.of({"apiVersion": API, "kind": "VirtualCluster", "metadata": metadata, "spec": wanted})


def cluster_version(name: str, /, **args: list[str]) -> Object:
    """A ClusterVersion whose components have these extra arguments (etcd, apiserver, controller_manager)."""
    spec = {
        "etcd": bundle("etcd", "etcd", args.get("etcd", []), service={"clusterIP": "None"}),
        "apiServer": bundle("apiserver", "kube-apiserver", args.get("apiserver", []), service={"type": "NodePort"}),
        "controllerManager": bundle(
            "controller-manager", "kube-controller-manager", args.get("controller_manager", [])
        ),
    }
    return Object.of({"apiVersion": API, "kind": "ClusterVersion", "metadata": {"name": name}, "spec": spec})


def bundle(name: str, command: str, args: list[str], *, service: dict[str, Any] | None = None) -> dict[str, Any]:
    """One component."""
    labels = {"component-name": name}
    container = {"name": name, "image": f"example.com/{name}:1", "command": [command], "args": args}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"serviceName": name, "selector": {"matchLabels": labels}, "template": template}
    found: dict[str, Any] = {
        "metadata": {"name": name},
        "statefulset": {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec},
    }
    if service is not None:
        named = "apiserver-svc" if name == "apiserver" else name
        spec_of = {"selector": labels, **service}
        found["service"] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": named}, "spec": spec_of}
    return found


def decoded(secret: Object, key: str) -> bytes:
    """One value of a Secret."""
    return base64.b64decode(secret.get("data")[key])
