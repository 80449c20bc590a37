"""What is read of a kubelet's reports about the pods of its node, and shown to a tenant: no other field. Pure."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

Maybe = Raw | UnsetType  # numbers and times, which are passed on as they are


class Reference(msgspec.Struct):
    """A pod of the super cluster."""

    uid: str = ""


class Container(msgspec.Struct, omit_defaults=True):
    """A container of a pod."""

    name: str = ""
    image: str = ""
    resources: Maybe = UNSET


class Spec(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The spec of a pod."""

    node_name: str = ""
    hostname: str = ""
    restart_policy: str = ""
    termination_grace_period_seconds: Maybe = UNSET
    init_containers: list[Container] | None = None
    containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None


class RunningPod(msgspec.Struct):
    """A pod of /runningpods."""

    metadata: Reference
    spec: Spec = msgspec.field(default_factory=Spec)


class RunningPods(msgspec.Struct):
    """The answer to /runningpods."""

    items: list[RunningPod] | None = None


class Claim(msgspec.Struct):
    """The claim of a volume; in the super cluster it has the name that it has in the tenant."""

    name: str = ""
    namespace: str = ""


class Volume(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The use of a volume."""

    name: str = ""
    pvc_ref: Claim | None = None
    time: Maybe = UNSET
    available_bytes: Maybe = UNSET
    capacity_bytes: Maybe = UNSET
    used_bytes: Maybe = UNSET
    inodes_free: Maybe = UNSET
    inodes: Maybe = UNSET
    inodes_used: Maybe = UNSET
    volume_health_stats: Maybe = UNSET


class PodStatistics(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The use of a pod and of its containers."""

    pod_ref: Reference
    start_time: Maybe = UNSET
    cpu: Maybe = UNSET
    memory: Maybe = UNSET
    io: Maybe = UNSET
    network: Maybe = UNSET
    ephemeral_storage: Maybe = msgspec.field(name="ephemeral-storage", default=UNSET)
    process_stats: Maybe = msgspec.field(name="process_stats", default=UNSET)
    swap: Maybe = UNSET
    containers: Maybe = UNSET
    volume: list[Volume] | None = None


class Node(msgspec.Struct, rename="camel"):
    """The node of a summary."""

    node_name: str


class Summary(msgspec.Struct):
    """The answer to /stats/summary."""

    node: Node
    pods: list[PodStatistics] | None = None


def plain(shown: msgspec.Struct) -> dict[str, Any]:
    """The fields that are there, under their names in JSON."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(shown))
    return found
