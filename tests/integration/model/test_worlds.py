"""The model of API servers that property tests use behaves like a real API server."""

import itertools
from typing import Any

import pytest

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from worlds import Server

HELD, FREE = ["hansa.dev/test"], []
FAILED = {"status": {"phase": "Failed"}, "metadata": {"annotations": {keys.LOWER_UID: "l1"}}}
Step = tuple[str, Any]


def manifest(kind: str, namespace: str, finalizers: list[str]) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": namespace, "finalizers": finalizers}
    head = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    # A node that does not exist: there is no kubelet, and the pod counts as placed.
    spec = {"nodeName": "nowhere", "containers": [{"name": "main", "image": "i"}]}
    return head | ({"spec": spec} if kind == "Pod" else {"data": {"a": "1"}})


def shown(obj: Object | None) -> Any:
    """What decisions look at."""
    if obj is None:
        return None
    metadata = obj.metadata
    own = {k: v for k, v in obj.annotations.items() if k.startswith("hansa.dev/")}
    return (
        obj.is_deleting,
        metadata.deletion_grace_period_seconds,
        metadata.finalizers,
        own,
        obj.status.get("phase"),
        obj.get("data"),
    )


@pytest.mark.parametrize(
    ("kind", "finalizers", "steps"),
    [
        ("Pod", FREE, [("delete", None), ("delete", 60), ("delete", 5), ("delete", 0)]),
        ("Pod", HELD, [("delete", 9), ("status", FAILED), ("delete", 0), ("delete", 0), ("release", None)]),
        ("Pod", HELD, [("delete", 0), ("status", FAILED), ("delete", 30), ("release", None)]),
        ("Pod", FREE, [("status", FAILED), ("delete", 30)]),
        ("Pod", FREE, [("patch", FAILED), ("delete", 0)]),
        ("ConfigMap", FREE, [("patch", {"data": {"a": None, "b": "2"}}), ("delete", 30)]),
        ("ConfigMap", HELD, [("delete", None), ("delete", 0), ("patch", {"data": {"b": "2"}}), ("release", None)]),
    ],
)
async def test_it_does_as_the_real_one(
    client: Client, namespace: str, kind: str, finalizers: list[str], steps: list[Step]
) -> None:
    resource = resources.PODS if kind == "Pod" else resources.CONFIG_MAPS
    pretended = Server("pretended", is_of_pods=kind == "Pod", numbers=itertools.count(1))
    real = await client.create(resource, Object.of(manifest(kind, namespace, finalizers)))
    pretended.create(manifest(kind, namespace, finalizers))
    for verb, what in steps:
        await on_real(client, real, resource, verb, what)
        on_pretended(pretended, real, verb, what)
        assert shown(await found(client, real, resource)) == shown(pretended.get(real.key)), f"after {verb} {what}"


async def found(client: Client, obj: Object, resource: Any) -> Object | None:
    try:
        return await client.get(resource, obj.name, namespace=obj.namespace)
    except errors.NotFound:
        return None


async def on_real(client: Client, obj: Object, resource: Any, verb: str, what: Any) -> None:
    if verb == "delete":
        await client.delete(resource, obj.name, namespace=obj.namespace, uid=obj.uid, grace=what)
        return
    patch = {"metadata": {"finalizers": None}} if verb == "release" else what
    subresource = "status" if verb == "status" else ""
    await client.patch(resource, obj.name, patch, namespace=obj.namespace, subresource=subresource)


def on_pretended(server: Server, real: Object, verb: str, what: Any) -> None:
    there = server.get(real.key)
    assert there is not None
    if verb == "delete":
        server.delete(there, what)
    elif verb == "release":
        server.pass_time()
    else:
        server.patch(there, what, verb if verb == "status" else "")
