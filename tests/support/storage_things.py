"""StorageClasses, local volumes, claims and pods that use them, for e2e tests."""

from typing import Any

from league import pod

CLASS = "local-disks"
Manifest = dict[str, Any]


def storage_class(name: str = CLASS, provisioner: str = "kubernetes.io/no-provisioner") -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, node: str, *, storage: str = CLASS, mode: str = "ReadWriteOnce") -> Manifest:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": storage,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def claim(name: str, *, storage: str = CLASS, mode: str = "ReadWriteOnce") -> Manifest:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": [mode], "storageClassName": storage, "resources": resources},
    }


def using(name: str, claim_name: str, **spec: Any) -> Manifest:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, volumes=volumes, **spec)
