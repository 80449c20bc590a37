"""The clusters that share the load, and what each namespace holds of them. Immutable; it follows one change at a time.
Sums are over what every namespace holds now: a holding is replaced as a whole, never adjusted.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from hansa.kube.language import quantity
from hansa.model import requests
from hansa.runtime import errors
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.slicing import slices
from hansa.scheduling.slicing.placements import Holding

_WHOLE: Final = 100  # percent


class HeadroomError(errors.HansaError, ValueError):
    """A headroom cannot be read."""


class State(StrEnum):
    """What may happen to the slices in a cluster."""

    OPEN = "open"  # new ones come
    CLOSED = "closed"  # those that are there stay
    LEAVING = "leaving"  # they go elsewhere where there is room
    LOST = "lost"  # they are gone


@dataclass(frozen=True, slots=True)
class Headroom:
    """What of a cluster is kept free, so that some of its hosts may fail: a share of all, and amounts besides."""

    percent: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)

    def left(self, resource: str, nano: int) -> int:
        """What remains for slices."""
        return nano * (_WHOLE - self.percent) // _WHOLE - self.amounts.get(resource, 0)


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of the pool. `offer` is what its nodes have less what others use; `why` explains a state but OPEN."""

    name: str
    offer: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    state: State = State.OPEN
    why: str = ""
    headroom: Headroom = Headroom()


@dataclass(frozen=True, slots=True)
class Pool:
    """Members and holdings at one moment."""

    members: Mapping[str, Member] = field(default_factory=dict)
    _holdings: PersistentMap[str, Holding] = field(default_factory=PersistentMap)
    _taken: Mapping[str, requests.Amounts] = field(default_factory=dict)  # also of clusters that are not members yet

    def with_member(self, member: Member) -> "Pool":
        """The same after a cluster came or changed."""
        return dataclasses.replace(self, members={**self.members, member.name: member})

    def with_members(self, members: Mapping[str, Member]) -> "Pool":
        """The same with these clusters and no others."""
        return dataclasses.replace(self, members=members)

    def without_member(self, name: str) -> "Pool":
        """The same after a cluster went. What namespaces hold there is remembered until they are planned again."""
        return dataclasses.replace(self, members={key: one for key, one in self.members.items() if key != name})

    def holding(self, namespace: str) -> Holding:
        """What a namespace holds."""
        return self._holdings.get(namespace) or Holding()

    def with_holding(self, namespace: str, holding: Holding) -> "Pool":
        """The same after a namespace got other slices, or none any more."""
        taken = _moved(_moved(self._taken, self.holding(namespace), -1), holding, 1)
        holdings = self._holdings
        holdings = holdings.having(namespace, holding) if holding.placements else holdings.without(namespace)
        return dataclasses.replace(self, _holdings=holdings, _taken=taken)

    def left(self, cluster: str, resource: str) -> int:
        """What slices can still take of a resource: what is offered, less headroom, less what is taken."""
        member = self.members.get(cluster)
        if member is None:
            return 0
        taken = self._taken.get(cluster, {}).get(resource, 0)
        return member.headroom.left(resource, member.offer.get(resource, 0)) - taken

    def room(self, cluster: str, slice_: slices.Slice) -> int:
        """How many more slices of this size fit there."""
        return slices.holds({resource: self.left(cluster, resource) for resource in slice_}, slice_)


def headroom(text: str) -> Headroom:
    """Read a headroom: "10%", "cpu=2,memory=4Gi", or both: "10%,cpu=2"."""
    percent, amounts = 0, {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, amount = part.partition("=")
        try:
            if equals:
                amounts[name.strip()] = quantity.parse(amount).nano
            else:
                percent = int(part.removesuffix("%")) if part.endswith("%") else _WHOLE + 1
        except ValueError:
            percent = _WHOLE + 1
    if not 0 <= percent <= _WHOLE or any(nano < 0 for nano in amounts.values()):
        raise HeadroomError(f'the headroom "{text}" cannot be read: write it like 10% or cpu=2,memory=4Gi')
    return Headroom(percent, amounts)


def _moved(taken: Mapping[str, requests.Amounts], holding: Holding, sign: int) -> Mapping[str, requests.Amounts]:
    changed = dict(taken)
    for cluster, number in holding.placements.items():
        amounts = dict(changed.get(cluster, {}))
        requests.add(amounts, holding.slice, sign * number)
        changed[cluster] = amounts
        if not amounts:
            del changed[cluster]
    return changed
