"""The attempts to place one proxy pod: its present target, and those that did not take it, each with the reason."""

import random as randomness
from dataclasses import dataclass, field
from typing import Final

from hansa.federation.binding.proxy import ProxyRequest
from hansa.runtime.backoff import Backoff
from hansa.scheduling.verdict import Fragmented, Insufficient, Verdict

STALE_SECONDS: Final = 10.0  # in which a condition that was there before the attempt is not taken as its result
REPEAT_SECONDS: Final = 300.0  # until an Event with the same reasons is recorded again
# Until a target that did not take a pod for a reason that its summary doesn't show is tried again.
AVOID: Final = Backoff(first=10.0, factor=2.0, most=300.0, jitter=0.1)


@dataclass(frozen=True, slots=True)
class Failed:
    """A target that did not take the pod, until when it is avoided, and how often that happened."""

    reason: str
    until: float
    times: int


@dataclass(slots=True)
class Attempts:
    """The attempts of one pod. `before` is the condition about the target at the time of the last attempt."""

    request: ProxyRequest
    since: float = 0.0
    before: str = ""
    is_failing: bool = False
    failed: dict[str, Failed] = field(default_factory=dict)
    _reported: frozenset[tuple[str, str]] = frozenset()
    _reported_at: float = 0.0

    def begin(self, now: float, before: str) -> None:
        """A target was chosen."""
        self.since, self.before, self.is_failing = now, before, False

    def stale_seconds(self, failure: str, now: float) -> float:
        """For how long a failure may still be one of the attempt before."""
        return 0.0 if failure != self.before else max(0.0, self.since + STALE_SECONDS - now)

    def fail(self, target: str, reason: str, now: float, random: randomness.Random) -> None:
        """The present target did not take the pod. It is counted once for each attempt."""
        known = self.failed.get(target)
        times = (known.times if known else 0) + (not self.is_failing)
        until = known.until if known and self.is_failing else now + AVOID.delay(times, random)
        self.is_failing = True
        self.failed[target] = Failed(reason, until, times)

    def avoided(self, present: str, now: float) -> dict[str, str]:
        """The targets to avoid, with reasons; the present one as long as it fails."""
        return {
            name: one.reason
            for name, one in self.failed.items()
            if now < one.until or (name == present and self.is_failing)
        }

    def forget_explained(self, verdict: Verdict) -> None:
        """Stop avoiding targets whose summaries show now why they did not take the pod: when that changes, they may."""
        for refusal in verdict.refusals:
            known = self.failed.get(refusal.cluster)
            if known and any(isinstance(one, Insufficient | Fragmented) for one in refusal.reasons):
                self.failed[refusal.cluster] = Failed(known.reason, 0.0, known.times)

    def is_news(self, verdict: Verdict, now: float) -> bool:
        """Whether to record a refusal by all targets: its kind is another than before, or a while has passed."""
        kinds = frozenset((one.cluster, _kind(part)) for one in verdict.refusals for part in one.reasons)
        if kinds == self._reported and self._reported_at and now < self._reported_at + REPEAT_SECONDS:
            return False
        self._reported, self._reported_at = kinds, now
        return True

    def retry_seconds(self, now: float) -> float | None:
        """Until the next target is not avoided any more; None if none is."""
        ends = [one.until - now for one in self.failed.values() if one.until > now]
        return min(ends) if ends else None


def _kind(reason: object) -> str:
    """Amounts change with every pod that comes and goes."""
    if isinstance(reason, Insufficient):
        return f"Insufficient {reason.resource}"
    return "Fragmented" if isinstance(reason, Fragmented) else str(reason)
