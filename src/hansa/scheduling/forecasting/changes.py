"""The changes that `hansa whatif` forecasts, parsed from its flags. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from hansa.kube.language import quantity
from hansa.runtime.errors import HansaError


class InvalidChange(HansaError):
    """A change cannot be parsed, or names something that does not exist."""


@dataclass(frozen=True, slots=True)
class Lose:
    """A cluster is cut off for good."""

    cluster: str

    def __str__(self) -> str:
        return f"--lose {self.cluster}"


@dataclass(frozen=True, slots=True)
class AddNode:
    """A cluster gets one more node, without taints and labels of its own."""

    cluster: str
    amounts: Mapping[str, int]

    def __str__(self) -> str:
        return f"--add-node {self.cluster}"


@dataclass(frozen=True, slots=True)
class Drain:
    """A node is cordoned, and its pods are evicted."""

    cluster: str
    node: str

    def __str__(self) -> str:
        return f"--drain {self.cluster}/{self.node}"


@dataclass(frozen=True, slots=True)
class Quota:
    """A namespace of a tenant gets another quota."""

    namespace: str
    amounts: Mapping[str, int]

    def __str__(self) -> str:
        return f"--quota {self.namespace}"


Change = Lose | AddNode | Drain | Quota
DEFAULT_PODS = 110  # of a node, as kubelets have it
_RESOURCES = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})


def add_node(text: str) -> AddNode:
    """Parse CLUSTER=cpu=8,memory=32Gi."""
    cluster, amounts = _named(text, "--add-node", "CLUSTER")
    return AddNode(cluster, {"pods": DEFAULT_PODS * quantity.UNIT, **amounts})


def drain(text: str) -> Drain:
    """Parse CLUSTER/NODE; the cluster may have a slash, as a namespaced Target has."""
    cluster, slash, node = text.rpartition("/")
    if not (cluster and slash and node):
        raise InvalidChange(f'invalid --drain "{text}": use CLUSTER/NODE')
    return Drain(cluster, node)


def quota(text: str) -> Quota:
    """Parse NAMESPACE=cpu=4,memory=8Gi."""
    return Quota(*_named(text, "--quota", "NAMESPACE"))


def _named(text: str, flag: str, what: str) -> tuple[str, dict[str, int]]:
    name, equals, listed = text.partition("=")
    parsed = [_amount(part) for one in listed.split(",") if (part := one.strip())]
    amounts = {one[0]: one[1] for one in parsed if one is not None}
    if not (name and equals and amounts and None not in parsed):
        raise InvalidChange(f'invalid {flag} "{text}": use {what}=cpu=8,memory=32Gi')
    if len(amounts) < len(parsed):
        raise InvalidChange(f'invalid {flag} "{text}": a resource is given twice')
    if unknown := [resource for resource in amounts if not _is_resource(resource)]:
        raise InvalidChange(
            f'invalid {flag} "{text}": "{unknown[0]}" is no resource: use cpu, memory, pods, ephemeral-storage,'
            " hugepages-SIZE, or a name with a domain, such as nvidia.com/gpu"
        )
    return name, amounts


def _amount(text: str) -> tuple[str, int] | None:
    """Parse RESOURCE=QUANTITY; None if it has another form or is negative."""
    resource, _, amount = text.partition("=")
    try:
        nano = quantity.parse(amount.strip()).nano
    except ValueError:
        return None
    return (resource.strip().removeprefix("requests."), nano) if nano >= 0 else None


def _is_resource(name: str) -> bool:
    return name in _RESOURCES or name.startswith("hugepages-") or "/" in name
