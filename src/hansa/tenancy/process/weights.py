"""How much the programs of tenants weigh beside all others that want a core: the more tenants there are, the less each.

All of them together weigh as much as a few, so that many who do something at once leave the super cluster, which they
all wait for, its part of the cores. Whoever starts has its full weight until it serves.
"""

import math
from collections.abc import Iterable

from hansa.local.process import MOST_NICE, Process

FEW = 4  # tenants that have their full weight
STEP = 1.25  # what a step of niceness divides a weight by


def niceness(tenants: int) -> int:
    """With which all of so many together weigh as much as a few."""
    return min(MOST_NICE, round(math.log(max(tenants / FEW, 1.0), STEP)))


class Weights:
    """The programs that serve, by their tenant."""

    def __init__(self) -> None:
        self._serving: dict[str, tuple[Process, ...]] = {}
        self._given: dict[Process, int] = {}  # of those that a former manager started nothing is known

    def serve(self, tenant: str, programs: Iterable[Process]) -> None:
        """These are a tenant's programs, and all of them serve."""
        self._serving[tenant] = tuple(programs)
        self._share()

    def leave(self, tenant: str) -> None:
        """A tenant is gone."""
        self._serving.pop(tenant, None)
        self._share()

    def _share(self) -> None:
        """Give all the same. What the kernel refuses now, as it may, is tried again the next time."""
        wanted, before = niceness(len(self._serving)), self._given
        all_of_them = (one for programs in self._serving.values() for one in programs)
        self._given = {one: wanted for one in all_of_them if before.get(one) == wanted or one.be_nice(wanted)}
