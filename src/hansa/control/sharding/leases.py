"""The Lease of a member: its identity, when it was renewed, and as an annotation the shards that it claims. Pure."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hansa.control.sharding import shards
from hansa.control.sharding.share import Peer
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.runtime import timestamps


@dataclass(frozen=True, slots=True)
class Keys:
    """The label with the name of the group, and the annotations with the claims of a member and that it leaves."""

    group: str
    claims: str
    leaving: str


@dataclass(frozen=True, slots=True)
class Group:
    """A group of members: its name, the namespace of its Leases, and their keys."""

    name: str
    namespace: str
    keys: Keys

    @property
    def selector(self) -> str:
        """The label selector of the Leases."""
        return f"{self.keys.group}={self.name}"

    def lease(self, name: str, claims: int, *, is_leaving: bool, seconds: float, now: datetime) -> Object:
        """The Lease of a member."""
        annotations = {self.keys.claims: shards.text(claims)} | ({self.keys.leaving: "true"} if is_leaving else {})
        metadata: dict[str, Any] = {
            "namespace": self.namespace,
            "name": name,
            "labels": {self.keys.group: self.name},
            "annotations": annotations,
        }
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": math.ceil(seconds),
            "renewTime": timestamps.micro_time(now),
        }
        kind = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
        return Object.of({**kind, "metadata": metadata, "spec": spec})

    def peer(self, lease: Object) -> Peer:
        """The member of a Lease."""
        return Peer(
            lease.name,
            f"{lease.uid} {lease.version}",
            shards.parsed(lease.annotations.get(self.keys.claims, "")),
            float(lease.spec.get("leaseDurationSeconds") or 0),
            is_leaving=lease.annotations.get(self.keys.leaving) == "true",
        )
