"""The fence of a super cluster: a Lease there that those renew who can act on it, and when its pods have to end. Pure.

Nobody compares wall clocks: of a renewal it only matters whether it is another one, and since when one sees it.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.tenancy.pool import cluster_id

PLACE: Final = NamespacedName(cluster_id.PLACE.namespace, "hansa-fence")
RENEWALS: Final = 6  # in the time that a lease holds
LOOKS: Final = 12  # of the agent in that time
NOTES: Final = 2  # in that time, by which others know that the agent looks
BLIND: Final = 3  # looks that failed: after more of them it is not known when a renewal came
RETURN: Final = 5.0  # seconds at least, in which those who renew find out that the API server is back
WITHOUT_LEASE: Final = 5.0  # seconds from one look to the next while there is none
DEFAULT_GRACE: Final = 30  # seconds that a pod has to end if it does not say


@dataclass(frozen=True, slots=True)
class Terms:
    """What a lease says: which renewal it is, how many seconds it holds, and how many more until others begin."""

    renewal: str
    duration: float
    grace: float
    meta: str  # the id of the meta cluster whose tenants' pods end

    @property
    def look_again(self) -> float:
        """Seconds from one look of the agent to the next."""
        return self.duration / LOOKS

    @property
    def last_seconds(self) -> int:
        """Seconds that pods have to end: half of the grace. The other half is for what was on its way."""
        return math.floor(self.grace / 2)


def terms(lease: Object | None) -> Terms | None:
    """Read a lease; None if nobody has renewed it yet."""
    spec = {} if lease is None else lease.spec
    if lease is None or not spec.get("renewTime") or not spec.get("leaseDurationSeconds"):
        return None
    grace = lease.annotations.get(keys.FENCE_GRACE, "")
    return Terms(
        str(spec["renewTime"]),
        float(spec["leaseDurationSeconds"]),
        float(grace) if grace.isdecimal() else 0.0,
        lease.annotations.get(keys.META, ""),
    )


def renewal(holder: str, now: str, *, lost_after: float, grace: float, meta: str) -> dict[str, Any]:
    """The patch that renews a lease."""
    words = {keys.FENCE_GRACE: str(math.ceil(grace)), keys.META: meta}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": math.ceil(lost_after), "renewTime": now}
    return {"metadata": {"annotations": words}, "spec": spec}


def note(seen: Terms, age: float) -> dict[str, Any]:
    """The patch by which the agent says which renewal it sees, and for how long: it may be killed, and goes on then."""
    return {"metadata": {"annotations": {keys.FENCE_SEEN: f"{seen.renewal} {age:.1f}"}}}


def noted(lease: Object) -> str:
    """What an agent wrote down last; empty if there never was one."""
    return lease.annotations.get(keys.FENCE_SEEN, "")


def noted_age(lease: Object) -> float:
    """For how long an agent saw this very renewal, by its note."""
    renewal, _, age = noted(lease).partition(" ")
    is_same = renewal == lease.spec.get("renewTime")
    return float(age) if is_same and age.replace(".", "", 1).isdecimal() else 0.0


@dataclass(frozen=True, slots=True)
class Fence:
    """What was seen of the lease so far, by one clock that only goes forward."""

    terms: Terms | None = None
    since: float = -math.inf  # from when on it counts
    seen: float = -math.inf  # when it was seen last
    back: float = -math.inf  # when it was seen again after a time without sight

    def looked(self, found: Terms | None, now: float, *, age: float = 0.0) -> "Fence":
        """The lease was read. `age` is for how long this renewal had been seen when nothing else is known of it."""
        if found is None or self.terms is None:
            return Fence(found, since=now - age, seen=now)
        is_blind = now - self.seen > found.look_again * BLIND
        later = replace(self, terms=found, seen=now, back=now if is_blind else self.back)
        if found.renewal == self.terms.renewal:
            return later
        # One that came while nothing was seen may be as old as that time: counted from its end it would hold too long.
        return replace(later, since=self.seen if is_blind else now)

    @property
    def ends(self) -> float:
        """When the pods have to end, if nothing is renewed until then.

        After a time without sight those who renew could not see the API server either: they get a chance to come back.
        """
        if self.terms is None:
            return math.inf
        return max(self.since + self.terms.duration, self.back + max(self.terms.duration / RENEWALS, RETURN))

    def age(self, now: float) -> float:
        """For how long the renewal that is seen counts."""
        return 0.0 if self.terms is None else now - self.since


def last_grace(pod: Object, most: int) -> int | None:
    """How many seconds a pod that must end gets; None if it has ended, or ends as soon by itself."""
    if requests.is_finished(pod):
        return None
    own = pod.spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    told = pod.metadata.deletion_grace_period_seconds if pod.is_leaving else None
    grace = min(own, most)
    return None if told is not None and told <= grace else grace


class Presence:
    """Whether an agent looks at a fence: it does while its note changes, and so many seconds longer."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._note, self._since = "", 0.0
        self.is_there = False

    def look(self, note: str, now: float) -> None:
        """Its note was read. The first one may be an old one: an agent that looks writes another soon."""
        if note != self._note:
            self._note, self._since, self.is_there = note, now, bool(note)
        elif now - self._since > self._patience:
            self.is_there = False
