"""What a cluster has for the pods of one upper cluster: what its nodes offer, less what all others use there.

It follows nodes and pods one by one: each object's part is remembered and replaced, never adjusted, and all is whole
numbers, so it always equals a sum over everything. Where objects come from is left to others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from hansa.kube import objects
from hansa.kube.language import quantity, tolerations
from hansa.model import requests
from hansa.model.requests import Amounts

READY = "Ready"
ALWAYS_TOLD = ("cpu", "memory", "pods")  # also when there is nothing of them
_BINARY = frozenset({"memory", "ephemeral-storage", "storage"})


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """What is read of a node's status."""

    allocatable: Mapping[str, str] | None = None
    conditions: tuple[_Condition, ...] | None = None


class NodeSpec(msgspec.Struct, frozen=True, gc=False):
    """What is read of a node's spec."""

    unschedulable: bool | None = None
    taints: tuple[tolerations.Taint, ...] | None = None


class Ground(msgspec.Struct, frozen=True, gc=False):
    """What a node offers, and what about it can be told above. `takes_pods` is whether new pods may come to it."""

    allocatable: Amounts
    takes_pods: bool
    true_conditions: frozenset[str]
    labels: Mapping[str, str]

    @property
    def is_ready(self) -> bool:
        return READY in self.true_conditions


class Totals(msgspec.Struct, frozen=True, gc=False):
    """What a virtual node offers in all, and what of it the pods of its upper cluster can have."""

    capacity: Amounts
    allocatable: Amounts


class _Site:
    """One node and what is bound to it; pods may be known before their node is."""

    __slots__ = ("ground", "others", "ours", "pods")

    def __init__(self) -> None:
        self.ground: Ground | None = None
        self.ours: Amounts = {}
        self.others: Amounts = {}
        self.pods = 0

    @property
    def takes_pods(self) -> bool:
        return self.ground is not None and self.ground.takes_pods

    def capacity(self) -> Amounts:
        # A node that takes no pods still bears those of ours that are on it. The upper scheduler subtracts them from
        # the whole: without their share they would take room on other nodes that they don't use.
        return self.ground.allocatable if self.ground and self.ground.takes_pods else self.ours

    def free(self) -> Amounts:
        """What is left for us. A node that bears more than it offers takes nothing away from the other nodes."""
        if self.ground is None or not self.ground.takes_pods:
            return self.ours
        left = {name: nano - self.others.get(name, 0) for name, nano in self.ground.allocatable.items()}
        return {name: nano for name, nano in left.items() if nano > 0}


class Capacity:
    """The totals of one cluster. `is_ours` tells a copy of the upper cluster's pods from everybody else's pods.

    A node counts while it is ready, not cordoned and without a taint that `consent` does not tolerate. Of its labels
    those in `label_keys` are remembered.
    """

    def __init__(
        self,
        is_ours: Callable[[objects.Object], bool],
        *,
        consent: Sequence[tolerations.Toleration] = (),
        label_keys: Iterable[str] = (),
    ) -> None:
        self._is_ours, self._consent, self._label_keys = is_ours, consent, tuple(label_keys)
        self._sites: dict[str, _Site] = {}
        self._claims: dict[objects.NamespacedName, tuple[requests.Claim, bool]] = {}
        self._capacity: Amounts = {}
        self._free: Amounts = {}

    def node(self, name: str, node: objects.Object | None) -> bool:
        """A node is so now, or gone. The answer is whether anything changed by it."""
        ground = None if node is None else self._ground(node)
        site = self._sites.setdefault(name, _Site())
        is_changed = ground != site.ground
        if is_changed:
            self._count(site, -1)
            site.ground = ground
            self._count(site, 1)
        self._forget_if_empty(name)
        return is_changed

    def pod(self, key: objects.NamespacedName, pod: objects.Object | None) -> bool:
        """A pod is so now, or gone. The answer is whether anything changed by it."""
        old = self._claims.get(key)
        claim = None if pod is None else requests.claim(pod)
        new = None if pod is None or claim is None else (claim, self._is_ours(pod))
        if new == old:
            return False
        is_felt = False
        if old is not None:
            del self._claims[key]
            is_felt = self._bind(*old, times=-1)
        if new is not None:
            self._claims[key] = new
            is_felt = self._bind(*new, times=1) or is_felt
        return is_felt

    def totals(self) -> Totals:
        """The sums as they are now. A resource that some node offers is told even when nothing of it is left."""
        told = {name: self._capacity.get(name, 0) for name in (*ALWAYS_TOLD, *sorted(self._capacity))}
        return Totals(told, {name: self._free.get(name, 0) for name in told})

    def grounds(self) -> list[Ground]:
        """All nodes, also those that take no pods."""
        return [site.ground for site in self._sites.values() if site.ground is not None]

    def _ground(self, node: objects.Object) -> Ground:
        spec, status = node.decode("spec", NodeSpec), node.decode("status", NodeStatus)
        conditions = frozenset(one.type for one in status.conditions or () if one.status == "True")
        repelled = tolerations.untolerated(spec.taints or (), self._consent)
        return Ground(
            allocatable=requests.amounts(status.allocatable),
            takes_pods=READY in conditions and not (spec.unschedulable or repelled or node.is_leaving),
            true_conditions=conditions,
            labels={key: node.labels[key] for key in self._label_keys if key in node.labels},
        )

    def _bind(self, claim: requests.Claim, is_ours: bool, *, times: int) -> bool:
        """Put a claim on its node or take it away; whether that is felt above."""
        site = self._sites.setdefault(claim.node, _Site())
        # Our pods count where no new ones may come, the others' where they may.
        is_felt = is_ours is not site.takes_pods
        if is_felt:
            self._count(site, -1)
        requests.add(site.ours if is_ours else site.others, claim.amounts, times)
        if is_felt:
            self._count(site, 1)
        site.pods += times
        self._forget_if_empty(claim.node)
        return is_felt

    def _count(self, site: _Site, times: int) -> None:
        requests.add(self._capacity, site.capacity(), times)
        requests.add(self._free, site.free(), times)

    def _forget_if_empty(self, name: str) -> None:
        site = self._sites[name]
        if site.ground is None and not site.pods:
            del self._sites[name]


def spelled(amounts: Mapping[str, int]) -> dict[str, str]:
    """Amounts as a resource list of the API, in the spelling that people expect of each resource."""
    return {name: str(quantity.Quantity(nano, format_of(name))) for name, nano in amounts.items()}


def format_of(name: str) -> quantity.Format:
    """How people expect amounts of a resource to be spelled."""
    is_binary = name in _BINARY or name.startswith("hugepages-")
    return quantity.Format.BINARY if is_binary else quantity.Format.DECIMAL
