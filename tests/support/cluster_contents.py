"""All objects of a cluster, to compare a cluster with itself at another time."""

import json
from typing import Any

from eventually import eventually
from programs import Kubectl

# Written by the cluster itself at any time.
FLEETING = {"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses"}
VOLATILE = ("resourceVersion", "managedFields", "generation")
# Of these, only the existence counts: their contents follow the readiness of pods.
FOLLOWING = {"Endpoints", "EndpointSlice"}


async def contents(kubectl: Kubectl) -> dict[str, Any]:
    """Objects by kind, namespace and name, without their status and what any write changes."""
    kinds = (await kubectl("api-resources", "--verbs=list", "-o", "name")).split()
    found = await kubectl.get("-A", ",".join(kind for kind in kinds if kind not in FLEETING))
    return {_key(one): _content(one) for one in found["items"]}


def _key(obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    return f"{obj['apiVersion']} {obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def _content(obj: dict[str, Any]) -> dict[str, Any]:
    if obj["kind"] in FOLLOWING:
        return {}
    metadata = {name: value for name, value in obj["metadata"].items() if name not in VOLATILE}
    return {name: value for name, value in obj.items() if name != "status"} | {"metadata": metadata}


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[str]]:
    """Keys of objects that came, went or changed."""
    return {
        "new": sorted(after.keys() - before.keys()),
        "gone": sorted(before.keys() - after.keys()),
        "changed": sorted(key for key in before.keys() & after.keys() if before[key] != after[key]),
    }


async def is_as_before(kubectl: Kubectl, before: dict[str, Any]) -> None:
    """Wait until a cluster has the same objects as it had."""

    async def look() -> bool:
        left = differences(before, await contents(kubectl))
        assert left == {"new": [], "gone": [], "changed": []}, json.dumps(left)
        return True

    await eventually(look, within=60, every=1.0)
