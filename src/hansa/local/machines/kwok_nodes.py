"""Creates, replaces and deletes the kwok nodes of a cluster: Node objects whose kubelet kwok simulates."""

import platform
from collections.abc import Collection
from typing import Any

import msgspec

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.local.machines.node import KIND_LABEL
from hansa.local.spec import ClusterSpec
from hansa.programs import binaries, parallel
from hansa.runtime.errors import HansaError

LEASE_NAMESPACE = "kube-node-lease"
SHAPE_ANNOTATION = "hansa.dev/local-node-shape"


async def ensure(client: Client, spec: ClusterSpec) -> None:
    """Create missing nodes, replace nodes of another shape, delete surplus nodes."""
    existing = {
        node.name: node
        async for page in client.pages(resources.NODES, labels=f"{KIND_LABEL}=kwok")
        for node in page.items
    }
    wanted = names(spec)
    stale = [node for node in existing.values() if node.name not in wanted or _shape(node) != _encoded(spec)]
    await parallel.run(_delete(client, resources.NODES, node) for node in stale)
    gone = {node.name for node in stale}
    missing = [name for name in wanted if name not in existing or name in gone]
    await parallel.run(_create(client, _manifest(spec, name), cluster=spec.name) for name in missing)


async def delete_leases(client: Client, wanted: Collection[str]) -> None:
    """Delete the leases of these nodes, so that a lease that appears later is of a new kubelet."""
    held = await client.list(resources.LEASES, namespace=LEASE_NAMESPACE, limit=0)
    ours = [lease for lease in held.items if lease.name in set(wanted)]
    await parallel.run(_delete(client, resources.LEASES, lease) for lease in ours)


def names(spec: ClusterSpec) -> list[str]:
    """The names of the kwok nodes of the cluster."""
    return [f"{spec.name}-{index}" for index in range(spec.nodes)]


def _manifest(spec: ClusterSpec, name: str) -> dict[str, Any]:
    shape = spec.shape
    resources_of_node = {"cpu": shape.cpu, "memory": shape.memory, "pods": shape.pods}
    architecture = binaries.this_platform().arch
    well_known = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture,
        KIND_LABEL: "kwok",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**well_known, **shape.labels},
            "annotations": {"kwok.x-k8s.io/node": "fake", SHAPE_ANNOTATION: _encoded(spec)},
        },
        "spec": {"taints": [msgspec.to_builtins(taint) for taint in shape.taints]},
        "status": {
            "capacity": resources_of_node,
            "allocatable": resources_of_node,
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": _node_info(architecture),
        },
    }


def _node_info(architecture: str) -> dict[str, str]:
    return {
        "architecture": architecture,
        "operatingSystem": "linux",
        "kernelVersion": platform.release(),
        "osImage": "kwok",
        "containerRuntimeVersion": "kwok://0.8.0",
        "kubeletVersion": binaries.catalogue()["kubelet"].version,
        "kubeProxyVersion": "",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }


def _encoded(spec: ClusterSpec) -> str:
    return msgspec.json.encode(spec.shape).decode()


def _shape(node: Object) -> str:
    return node.metadata.annotations.get(SHAPE_ANNOTATION, "")


async def _create(client: Client, manifest: dict[str, Any], *, cluster: str) -> None:
    name = manifest["metadata"]["name"]
    try:
        await client.create(resources.NODES, Object.of(manifest))
    except errors.AlreadyExists as error:
        raise HansaError(
            f'cluster {cluster} has a node "{name}" that hansa local did not create;'
            f' delete it and run "hansa local up {cluster}" again'
        ) from error


async def _delete(client: Client, resource: Resource, obj: Object) -> None:
    try:
        await client.delete(resource, obj.name, namespace=obj.namespace, uid=obj.uid)
    except errors.NotFound:
        return
