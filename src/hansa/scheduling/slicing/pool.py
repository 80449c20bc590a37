"""The clusters of a pool, and the slices that namespaces hold in each. Immutable.

Sums are exact: a namespace's holding is replaced as a whole.
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
    """A headroom is not valid."""


class State(StrEnum):
    """Whether a cluster gets and keeps slices."""

    OPEN = "open"  # it gets new slices
    CLOSED = "closed"  # it keeps its slices and gets no new ones
    LEAVING = "leaving"  # its slices move to clusters with capacity
    LOST = "lost"  # its slices are placed again elsewhere


@dataclass(frozen=True, slots=True)
class Headroom:
    """The capacity of a cluster that is kept free, for failures of nodes: a percentage, and amounts in addition."""

    percent: int = 0
    amounts: Mapping[str, int] = field(default_factory=dict)

    def left(self, resource: str, nano: int) -> int:
        """The amount that slices can use."""
        return nano * (_WHOLE - self.percent) // _WHOLE - self.amounts.get(resource, 0)


@dataclass(frozen=True, slots=True)
class Member:
    """A cluster of the pool. `offer` is allocatable less what other pods request; `reason` is of a state but OPEN."""

    name: str
    offer: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    state: State = State.OPEN
    reason: str = ""
    headroom: Headroom = Headroom()


@dataclass(frozen=True, slots=True)
class Pool:
    """The members of a pool and the holdings of namespaces."""

    members: Mapping[str, Member] = field(default_factory=dict)
    _holdings: PersistentMap[str, Holding] = field(default_factory=PersistentMap)
    _taken: Mapping[str, requests.Amounts] = field(default_factory=dict)  # also in clusters that are not members yet

    def with_member(self, member: Member) -> "Pool":
        """A pool with a cluster added or updated."""
        return dataclasses.replace(self, members={**self.members, member.name: member})

    def with_members(self, members: Mapping[str, Member]) -> "Pool":
        """A pool with exactly these clusters."""
        return dataclasses.replace(self, members=members)

    def without_member(self, name: str) -> "Pool":
        """A pool without a cluster. Holdings there are kept until their namespaces are planned again."""
        return dataclasses.replace(self, members={key: one for key, one in self.members.items() if key != name})

    def holding(self, namespace: str) -> Holding:
        """The slices of a namespace."""
        return self._holdings.get(namespace) or Holding()

    def with_holding(self, namespace: str, holding: Holding) -> "Pool":
        """A pool with the holding of one namespace replaced; an empty one removes it."""
        taken = _with_times(_with_times(self._taken, self.holding(namespace), -1), holding, 1)
        holdings = self._holdings
        holdings = holdings.having(namespace, holding) if holding.placements else holdings.without(namespace)
        return dataclasses.replace(self, _holdings=holdings, _taken=taken)

    def left(self, cluster: str, resource: str) -> int:
        """The amount of a resource that is free for slices: the offer, less headroom and slices."""
        member = self.members.get(cluster)
        if member is None:
            return 0
        taken = self._taken.get(cluster, {}).get(resource, 0)
        return member.headroom.left(resource, member.offer.get(resource, 0)) - taken

    def room(self, cluster: str, slice_: slices.Slice) -> int:
        """The number of slices of this size that a cluster has capacity for."""
        return slices.holds({resource: self.left(cluster, resource) for resource in slice_}, slice_)


def headroom(text: str) -> Headroom:
    """Parse a headroom: "10%", "cpu=2,memory=4Gi", or both: "10%,cpu=2"."""
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
        raise HeadroomError(f'invalid headroom "{text}": use a form such as 10% or cpu=2,memory=4Gi')
    return Headroom(percent, amounts)


def _with_times(taken: Mapping[str, requests.Amounts], holding: Holding, sign: int) -> Mapping[str, requests.Amounts]:
    changed = dict(taken)
    for cluster, number in holding.placements.items():
        amounts = dict(changed.get(cluster, {}))
        requests.add(amounts, holding.slice, sign * number)
        changed[cluster] = amounts
        if not amounts:
            del changed[cluster]
    return changed
