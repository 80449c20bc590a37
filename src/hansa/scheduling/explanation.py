"""The explanation of one pod, in every mode: where it is, since when, by which decision, and what each cluster says."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hansa.kube.objects import Object
from hansa.model import requests
from hansa.scheduling.explaining import Answer, Change

_MOST_MESSAGES = 3  # of Events; older ones say the same of an earlier moment


@dataclass(frozen=True, slots=True)
class Explanation:
    """A pod and the answers. `mode` is how it is spread over clusters, `below` what its copy's cluster says."""

    pod: Object
    mode: str
    answers: tuple[Answer, ...]
    cluster: str = ""  # where it is, or is assigned to
    decision: str = ""
    below: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()  # that are not of one cluster, such as a larger quota

    @property
    def placed(self) -> str:
        """Where the pod is, since when, or why not, as the end of a sentence."""
        return placed(self.pod, self.cluster)

    @property
    def remedy(self) -> str:
        """What would make it fit, whichever cluster that is; empty if only single clusters have an answer."""
        parts = [part for one in self.changes for part in one.parts()]
        return f"would fit if {' and '.join(parts)}" if parts else ""

    def as_json(self) -> dict[str, Any]:
        """The explanation for `-o json`."""
        return {
            "pod": str(self.pod.key),
            "mode": self.mode,
            "node": self.pod.spec.get("nodeName", ""),
            "cluster": self.cluster,
            "placed": self.placed,
            "since": condition(self.pod, "PodScheduled").get("lastTransitionTime", ""),
            "decision": self.decision,
            "below": list(self.below),
            "events": list(self.events),
            "answers": [one.as_json() for one in self.answers],
            **({"wouldFitIf": self.remedy, "changes": [one.as_json() for one in self.changes]} if self.changes else {}),
        }


def placed(pod: Object, cluster: str) -> str:
    """Where a pod is, since when, or why not, as the end of a sentence."""
    scheduled, node = condition(pod, "PodScheduled"), pod.spec.get("nodeName", "")
    if not pod.uid:
        return "does not exist yet"
    if not node:
        where = f"assigned to {cluster}, " if cluster else ""
        return f"is pending: {where}{scheduled.get('message') or 'it was not scheduled yet'}"
    since = scheduled.get("lastTransitionTime") or "its creation"
    state = "has finished on" if requests.is_finished(pod) else "is on"
    return f"{state} node {node}{f' of {cluster}' if cluster else ''} since {since}"


def condition(pod: Object, kind: str) -> dict[str, Any]:
    """One condition of a pod; empty if it has none."""
    return next((dict(one) for one in pod.status.get("conditions") or () if one.get("type") == kind), {})


def copy_state(copy: Object, cluster: str) -> str:
    """What a lower cluster says of the copy of a pod, as a sentence."""
    phase, scheduled = copy.status.get("phase") or "Pending", condition(copy, "PodScheduled")
    node, name = copy.spec.get("nodeName", ""), f"its copy {copy.key} in {cluster}"
    if not node:
        return f"{name} has no node: {scheduled.get('message') or 'its scheduler has not tried it yet'}"
    waiting = [
        f"{state['reason']}{f' ({text})' if (text := state.get('message')) else ''}"
        for one in copy.status.get("containerStatuses") or ()
        if (state := (one.get("state") or {}).get("waiting") or {}).get("reason")
    ]
    return ": ".join(filter(None, (f"{name} is {phase} on node {node}", "; ".join(waiting))))


def messages(events: Iterable[Object], *, times: Iterable[str]) -> tuple[str, ...]:
    """The newest Events as lines, each kind once; `times` has the time of each."""
    lines: dict[tuple[str, str], str] = {}
    for event, time in zip(events, times, strict=True):
        reason, text = str(event.get("reason", "")), " ".join(str(event.get("message", "")).split())
        by = str(event.get("reportingComponent") or (event.get("source") or {}).get("component") or "")
        lines.pop((reason, by), None)
        lines[reason, by] = f"{time} {by}: {reason}: {text}"
    return tuple(lines.values())[-_MOST_MESSAGES:]
