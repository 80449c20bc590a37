"""The fence of a super cluster: a Lease there that vc-scheduler and vc-syncer renew; pods end when it expires. Pure.

The agent decides with it when to delete pods. No wall clocks are compared: a renewal counts from when it is first read.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Final

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.runtime.errors import HansaError
from hansa.tenancy.pool import cluster_id

LEASE: Final = NamespacedName(cluster_id.CONFIG_MAP.namespace, "hansa-fence")
RENEWALS: Final = 6  # per lease duration
CHECKS: Final = 12  # of the lease by the agent, per lease duration
NOTES: Final = 2  # per lease duration, by which vc-scheduler sees that the agent is running
MISSED_CHECKS: Final = 3  # after more failed checks in a row it is unknown when a renewal was written
RECOVERY_SECONDS: Final = 5.0  # at least, for the renewers to notice that the API server is reachable again
NO_LEASE_SECONDS: Final = 5.0  # between two checks while no lease exists
DEFAULT_GRACE: Final = 30.0  # seconds, of the fence
DEFAULT_POD_GRACE: Final = 30  # seconds: the default of terminationGracePeriodSeconds


class GraceTooShort(HansaError):
    """Pods of a cluster that is cut off could still run there when they start elsewhere."""


def checked_grace(lost_after: float, grace: float | None) -> float:
    """The seconds from the end of a fence until its pods start elsewhere; None gives the default."""
    renewal, check = lost_after / RENEWALS, lost_after / CHECKS
    least = 2 * (renewal + check)  # the pods end in one half; a renewal in flight and the next check take the other
    if grace is None:
        return max(DEFAULT_GRACE, least)
    if grace < least:
        raise GraceTooShort(
            f"--fence-grace {grace:g} is too short for --lost-after {lost_after:g}: the fence is renewed every"
            f" {renewal:.3g} s, and the agent checks it every {check:.3g} s; use at least {least:g}, or a shorter"
            " --lost-after"
        )
    return grace


@dataclass(frozen=True, slots=True)
class Terms:
    """The content of a lease: its renewal, its duration, and the seconds after its end until pods start elsewhere."""

    renewal: str
    duration: float
    grace: float
    meta: str  # the id of the meta cluster; pods of its tenants are deleted

    @property
    def check_seconds(self) -> float:
        """Seconds between two checks by the agent."""
        return self.duration / CHECKS

    @property
    def pod_seconds(self) -> int:
        """The longest grace period of deleted pods: half of the grace. The other half covers requests in flight."""
        return math.floor(self.grace / 2)


def terms(lease: Object | None) -> Terms | None:
    """Read a lease; None if it does not exist or was never renewed."""
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
    annotations = {keys.FENCE_GRACE: str(math.ceil(grace)), keys.META: meta}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": math.ceil(lost_after), "renewTime": now}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def note(seen: Terms, age: float) -> dict[str, Any]:
    """The patch by which the agent records the renewal that it sees and its age, to continue after a restart."""
    return {"metadata": {"annotations": {keys.FENCE_SEEN: f"{seen.renewal} {age:.1f}"}}}


def agent_note(lease: Object) -> str:
    """The latest note of the agent; empty if no agent ever wrote one."""
    return lease.annotations.get(keys.FENCE_SEEN, "")


def noted_age(lease: Object) -> float:
    """The age of the current renewal by the agent's note; 0 if the note is about another one."""
    renewal, _, age = agent_note(lease).partition(" ")
    is_same = renewal == lease.spec.get("renewTime")
    return float(age) if is_same and age.replace(".", "", 1).isdecimal() else 0.0


@dataclass(frozen=True, slots=True)
class Fence:
    """The agent's observations of the lease, by a monotonic clock."""

    terms: Terms | None = None
    since: float = -math.inf  # when the current renewal began to count
    seen: float = -math.inf  # when the lease was read last
    back: float = -math.inf  # when the lease was read again after MISSED_CHECKS

    def observed(self, found: Terms | None, now: float, *, age: float = 0.0) -> "Fence":
        """The state after reading the lease. `age` is the age of the renewal at the first read after a restart."""
        if found is None or self.terms is None:
            return Fence(found, since=now - age, seen=now)
        has_missed = now - self.seen > found.check_seconds * MISSED_CHECKS
        later = replace(self, terms=found, seen=now, back=now if has_missed else self.back)
        if found.renewal == self.terms.renewal:
            return later
        # A renewal written while checks failed may be as old as the last successful one: counted from now, it would
        # last too long.
        return replace(later, since=self.seen if has_missed else now)

    @property
    def ends(self) -> float:
        """When the pods are deleted, unless the lease is renewed before.

        After failed checks the renewers get time for one renewal: they may not have reached the API server either.
        """
        if self.terms is None:
            return math.inf
        return max(self.since + self.terms.duration, self.back + max(self.terms.duration / RENEWALS, RECOVERY_SECONDS))

    def age(self, now: float) -> float:
        """Seconds since the current renewal began to count."""
        return 0.0 if self.terms is None else now - self.since


def pod_grace(pod: Object, most: int) -> int | None:
    """The grace period for deleting a pod, in seconds; None if it is finished or terminates in time already."""
    if requests.is_finished(pod):
        return None
    own = pod.spec.get("terminationGracePeriodSeconds", DEFAULT_POD_GRACE)
    current = pod.metadata.deletion_grace_period_seconds if pod.is_deleting else None
    grace = min(own, most)
    return None if current is not None and current <= grace else grace


class AgentPresence:
    """Whether an agent checks a fence: while its note changes, and for `timeout` seconds afterwards."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._note, self._since = "", 0.0
        self.is_present = False

    def observe(self, note: str, now: float) -> None:
        """Take the note that was read. The first one may be stale: a running agent soon writes another."""
        if note != self._note:
            self._note, self._since, self.is_present = note, now, bool(note)
        elif now - self._since > self._timeout:
            self.is_present = False
