"""Limits on what one upper cluster has in a lower one that others share: amounts of copies, and what exceeds a limit.

Pure. The sums are the caches', who waits for room is left to `engine.view.usage`.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from hansa.kube import resources
from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import requests

MIB: Final = 2**20
MILLI: Final = 1000
UNLIMITED: Final = 2**62
# The part of `bytes` and `objects` that only objects in use may fill: pods, and what something refers to.
RESERVED: Final = 1 / 8


class Limit(StrEnum):
    """What is limited, by its name in the API, in the order of `Amounts`."""

    BYTES = "bytes"
    OBJECTS = "objects"
    NAMESPACES = "namespaces"
    PODS = "pods"
    NODE_PORTS = "nodePorts"
    LOAD_BALANCERS = "loadBalancers"
    CPU = "cpu"  # requests of pods that are not finished
    MEMORY = "memory"
    REQUESTS = "requests"  # in flight at once: of no copy, so that amounts have none


class Amounts(NamedTuple):
    """How much of each: of one copy, or of all."""

    bytes: int = 0
    objects: int = 0
    namespaces: int = 0
    pods: int = 0
    node_ports: int = 0
    load_balancers: int = 0
    cpu: int = 0  # in thousandths of a core
    memory: int = 0  # in bytes
    requests: int = 0

    def of(self, limit: Limit) -> int:
        """One of the amounts."""
        return self[_ORDER[limit]]


class Limits(NamedTuple):
    """The most of each. The defaults leave room for a tenant with thousands of pods."""

    bytes: int = 64 * MIB
    objects: int = 20_000
    namespaces: int = 500
    pods: int = 10_000
    node_ports: int = 100
    load_balancers: int = 20
    cpu: int = UNLIMITED
    memory: int = UNLIMITED
    requests: int = 32  # half of those that the syncer has in flight to a cluster for all tenants

    def of(self, limit: Limit, *, is_used: bool = True) -> int:
        """The most of one, for an object that is in use or not."""
        most = self[_ORDER[limit]]
        return most if is_used or limit not in _PARTLY_RESERVED else most - int(most * RESERVED)


_ORDER: Final = {limit: number for number, limit in enumerate(Limit)}
_PARTLY_RESERVED: Final = frozenset({Limit.BYTES, Limit.OBJECTS})


@dataclass(frozen=True, slots=True)
class Room:
    """What an upper cluster may have in a lower one, and what it has; `is_used` is whether this object is in use."""

    limits: Limits
    used: Amounts
    is_used: bool = True

    def exceeded(self, needs: Amounts) -> Limit | None:
        """The limit that an object with these amounts would exceed, if any."""
        for limit, used, more in zip(Limit, self.used, needs, strict=True):
            if more > 0 and used + more > self.limits.of(limit, is_used=self.is_used):
                return limit
        return None


def amounts(resource: Resource, obj: Object | None) -> Amounts:
    """The amounts of one copy."""
    if obj is None:
        return NOTHING
    ports, balancers = _service_amounts(obj) if resource == resources.SERVICES else (0, 0)
    cpu, memory = _pod_requests(obj) if resource == resources.PODS else (0, 0)
    return Amounts(
        obj.size,
        1,
        int(resource == resources.NAMESPACES),
        int(resource == resources.PODS),
        ports,
        balancers,
        cpu,
        memory,
    )


def total(parts: Iterable[tuple[int, ...]]) -> Amounts:
    """The sum; empty parts count as nothing."""
    return Amounts(*map(sum, zip(NOTHING, *filter(None, parts), strict=True)))


def difference(after: Amounts, before: Amounts) -> Amounts:
    """How much more the first has."""
    return Amounts(*(one - other for one, other in zip(after, before, strict=True)))


def shown(limit: Limit, amount: int) -> str:
    """An amount for users."""
    if limit in {Limit.BYTES, Limit.MEMORY}:
        return f"{amount / MIB:.1f} MiB"
    return f"{amount / MILLI:g}" if limit is Limit.CPU else str(amount)


def message(limit: Limit, room: Room, needs: Amounts, cluster: str) -> str:
    """Why an object is not synced: the limit, what is used of it, and the remedy."""
    most, used = room.limits.of(limit), shown(limit, room.used.of(limit))
    is_reserved = not room.is_used and limit in _PARTLY_RESERVED
    reserved = ", 1/8 is reserved for objects that pods reference" if is_reserved else ""
    return (
        f"the tenant's limit of {limit} in {cluster} is reached: {used} of {shown(limit, most)} are used{reserved}, and"
        f" this object needs {shown(limit, needs.of(limit))}; delete other objects, or have spec.limits.{limit} of the"
        " VirtualCluster raised"
    )


def merged(defaults: Limits, *changes: Mapping[str, int | str]) -> tuple[Limits, list[str]]:
    """Limits with changes by name, of which the later win; and why some changes are invalid, which are ignored."""
    values, invalid = list(defaults), []
    for name, given in ((name, given) for one in changes for name, given in one.items()):
        try:
            values[_ORDER[Limit(name)]] = _parsed(Limit(name), given)
        except ValueError as error:
            invalid.append(f"limit {name}: {error}; supported: {', '.join(Limit)}")
    return Limits(*values), invalid


def _parsed(limit: Limit, given: int | str) -> int:
    amount = quantity.parse(given)
    value = amount.milli() if limit is Limit.CPU else amount.value()
    if value < 0:
        raise ValueError(f"{given} is negative")
    return value


NOTHING: Final = Amounts()
DEFAULT_LIMITS: Final = Limits()


class _Port(msgspec.Struct, frozen=True, gc=False):
    pass


class _Service(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    type: str = ""
    ports: tuple[_Port, ...] | None = None
    allocate_load_balancer_node_ports: bool | None = None
    external_traffic_policy: str | None = None


@functools.lru_cache(maxsize=256)
def _requests(spec: bytes) -> tuple[int, int]:
    """The requests of a pod: computed once, although most changes of a pod are those of its status."""
    found = requests.of_spec(spec)
    return found.get("cpu", 0) // quantity.MILLI, found.get("memory", 0) // quantity.UNIT


def _pod_requests(pod: Object) -> tuple[int, int]:
    return (0, 0) if requests.is_finished(pod) else _requests(pod.raw("spec"))


def _service_amounts(service: Object) -> tuple[int, int]:
    """Its node ports, requested or allocated, and load balancers."""
    spec = service.decode("spec", _Service)
    is_balanced = spec.type == "LoadBalancer"
    has_ports = spec.type == "NodePort" or (is_balanced and spec.allocate_load_balancer_node_ports is not False)
    checks = int(is_balanced and spec.external_traffic_policy == "Local")  # healthCheckNodePort
    return (len(spec.ports or ()) if has_ports else 0) + checks, int(is_balanced)
