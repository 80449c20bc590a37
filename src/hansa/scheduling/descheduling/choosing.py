"""Which pods are moved: those that their lower cluster cannot schedule, and that a controller creates again. Pure."""

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys, refused_owners, requests
from hansa.scheduling.descheduling.policy import Policy

_REFUSED: Final = ("Unschedulable", "SchedulerError")
_KEEP: Final = "descheduler.alpha.kubernetes.io/prefer-no-eviction"  # annotation: the pod is never moved


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that is evicted. `refused_by` is the virtual node that its successors avoid; empty for none."""

    pod: Object
    owner: str
    reason: str
    refused_by: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """A pod that may be moved after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Safe:
    """A pod that is not moved, and the reason."""

    reason: str


Nodes = Callable[[str], Object | None]


def decide(pod: Object, policy: Policy, node: Nodes, now: datetime.datetime) -> Move | Later | Safe:
    """Whether a pod is moved. `node` returns a virtual node by its name."""
    spec = pod.decode("spec", _Spec)
    if reason := _protection(pod, spec, policy):
        return Safe(reason)
    if not spec.node_name:
        return _of_unbound(pod, policy, node, now)
    if node(spec.node_name) is None:
        return Safe("it is on an ordinary node")
    return _of_bound(pod, spec.node_name, policy, now)


def _of_bound(pod: Object, node: str, policy: Policy, now: datetime.datetime) -> Move | Later | Safe:
    scheduled, owner = _scheduled(pod), refused_owners.owner_of(pod)
    if scheduled.get("status") == "False" and scheduled.get("reason") in _REFUSED:
        if (wait := policy.pending_seconds - _age(scheduled.get("lastTransitionTime"), now)) > 0:
            return Later(wait)
        return Move(pod, owner, f"node {node} cannot schedule it: {scheduled.get('message') or 'no message'}", node)
    if policy.oldest_pending_seconds > 0:
        made = pod.metadata.creation_timestamp
        wait = policy.oldest_pending_seconds - (now - made).total_seconds() if made else 0.0
        if wait > 0:
            return Later(wait)
        return Move(pod, owner, f"pending on node {node} for more than {policy.oldest_pending_seconds:g} s", node)
    return Safe("its cluster has not refused it")


def _of_unbound(pod: Object, policy: Policy, node: Nodes, now: datetime.datetime) -> Move | Later | Safe:
    """A pod that avoids nodes is created anew when it need not avoid one of them any longer."""
    avoided = [name for name in pod.annotations.get(keys.AVOIDS, "").split(",") if name]
    if not avoided:
        return Safe("it is left to the scheduler of the upper cluster")
    scheduled = _scheduled(pod)
    if scheduled.get("reason") not in _REFUSED:
        return Safe("it was not scheduled yet")
    if (wait := policy.pending_seconds - _age(scheduled.get("lastTransitionTime"), now)) > 0:
        return Later(wait)
    owner = refused_owners.owner_of(pod)
    found = {name: one for name in avoided if (one := node(name)) is not None}
    ends = {name: refused_owners.of(one, now).get(owner) for name, one in found.items()}
    if free := [name for name in avoided if ends.get(name) is None]:
        return Move(pod, owner, f"node {free[0]} accepts pods of this owner again")
    return Later(min(end - now.timestamp() for end in ends.values() if end is not None))


def _protection(pod: Object, spec: "_Spec", policy: Policy) -> str:
    """Why a pod is never moved; empty if it may be."""
    kinds = {one.kind for one in pod.metadata.owner_references if one.controller}
    namespace = pod.namespace
    protections: Mapping[str, bool] = {
        "it is being deleted": pod.is_deleting,
        "it is not pending": requests.is_finished(pod) or pod.status.get("phase") != "Pending",
        "it has no controller that would create it again": not kinds,
        "it belongs to a DaemonSet": "DaemonSet" in kinds,
        "it belongs to a node": "Node" in kinds,
        f"its priority is {spec.priority}": (spec.priority or 0) >= policy.priority_below,
        f"namespace {namespace} is excluded": namespace in policy.excluded
        or bool(policy.included and namespace not in policy.included),
        "its labels are not selected": not policy.selector.matches(pod.labels),
        f"it has the annotation {_KEEP}": _KEEP in pod.annotations,
        "it has claims, whose volumes may be in its cluster": not policy.moves_pods_with_claims
        and any(one.persistent_volume_claim for one in spec.volumes or ()),
    }
    return next((reason for reason, applies in protections.items() if applies), "")


def _scheduled(pod: Object) -> dict[str, Any]:
    conditions = pod.decode("status", _Status).conditions or ()
    return next((one for one in conditions if one.get("type") == "PodScheduled"), {})


def _age(moment: str | None, now: datetime.datetime) -> float:
    try:
        return (now - datetime.datetime.fromisoformat(moment or "")).total_seconds()
    except (ValueError, TypeError):
        return 0.0


class _Volume(msgspec.Struct, frozen=True, rename="camel"):
    persistent_volume_claim: dict[str, Any] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    priority: int | None = None
    volumes: tuple[_Volume, ...] | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[dict[str, Any], ...] | None = None
