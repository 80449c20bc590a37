"""The status of a VirtualCluster in each state of its control plane, and the merge patch that writes it. Pure.

The controller chooses the state and sends the patch.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hansa.runtime import timestamps
from hansa.tenancy.api import Condition, ConditionState, ConditionType, Phase, VirtualCluster

CREATING = "ClusterCreating"
RUNNING, RUNNING_MESSAGE = "TenantControlPlaneRunning", "tenant control plane is running"
FAILED = "TenantControlPlaneError"
UPGRADING = "TenantControlPlaneUpgrading"
UPGRADED, UPGRADED_MESSAGE = "TenantControlPlaneUpgradeCompleted", "tenant control plane was upgraded and is running"
UPGRADE_FAILED = "TenantControlPlaneUpgradeFailed"
LEAVING = "TenantControlPlaneLeaving"
LEFT_BEHIND = "LeftBehind"
LONGEST_MESSAGE = 1024  # characters


@dataclass(frozen=True, slots=True)
class Report:
    """The status to write. Conditions that it does not list stay as they are."""

    phase: Phase
    reason: str
    message: str
    conditions: Mapping[ConditionType, ConditionState] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)  # other fields of the status


def running(*, is_upgraded: bool) -> Report:
    """The control plane runs as desired."""
    reason, message = (UPGRADED, UPGRADED_MESSAGE) if is_upgraded else (RUNNING, RUNNING_MESSAGE)
    return Report(Phase.RUNNING, reason, message, {ConditionType.READY: ConditionState(True, RUNNING, RUNNING_MESSAGE)})


def working(vc: VirtualCluster, message: str, *, is_upgrade: bool) -> Report:
    """Creation, repair or upgrade is in progress. A running control plane keeps its phase, except for an upgrade."""
    if is_upgrade:
        return Report(Phase.UPDATING, UPGRADING, message)
    state = {ConditionType.READY: ConditionState(False, CREATING, message)}
    return Report(Phase.RUNNING if vc.is_running else Phase.PENDING, CREATING, message, state)


def failed(vc: VirtualCluster, message: str, *, reason: str = "", needs_user: bool = False) -> Report:
    """A step failed and is retried; `needs_user` if a retry cannot succeed before a user changes something."""
    if vc.status.phase == Phase.UPDATING:
        return Report(Phase.UPDATING, reason or UPGRADE_FAILED, message)
    phase = Phase.RUNNING if vc.is_running else Phase.ERROR if needs_user else Phase.PENDING
    reason = reason or FAILED
    return Report(phase, reason, message, {ConditionType.READY: ConditionState(False, reason, message)})


def patch(vc: VirtualCluster, report: Report, now: datetime.datetime) -> dict[str, Any]:
    """The merge patch of the status; empty if nothing differs."""
    wanted: dict[str, Any] = {
        "phase": str(report.phase),
        "reason": report.reason,
        "message": report.message[:LONGEST_MESSAGE],
        "clusterNamespace": vc.root,
        **report.more,
    }
    have = msgspec.to_builtins(vc.status)
    changes = {name: value for name, value in wanted.items() if have.get(name) != value}
    conditions = _conditions(vc, report.conditions, now)
    if conditions != vc.status.conditions:
        changes["conditions"] = msgspec.to_builtins(conditions)
    return {"status": changes} if changes else {}


def _conditions(
    vc: VirtualCluster, states: Mapping[ConditionType, ConditionState], now: datetime.datetime
) -> tuple[Condition, ...]:
    old = {one.type: one for one in vc.status.conditions}
    return tuple((old | {str(kind): _condition(vc, kind, state, now) for kind, state in states.items()}).values())


def _condition(vc: VirtualCluster, kind: ConditionType, state: ConditionState, now: datetime.datetime) -> Condition:
    status, old = "True" if state.status else "False", vc.condition(kind)
    since = old.last_transition_time if old and old.status == status else timestamps.time(now)
    return Condition(
        type=str(kind),
        status=status,
        reason=state.reason,
        message=state.message[:LONGEST_MESSAGE],
        last_transition_time=since,
        observed_generation=vc.object.metadata.generation,
    )
