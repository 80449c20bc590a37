"""The Node object of a virtual node, computed from the state of its lower cluster, and the patches to it. Pure.

While the lower cluster is unreachable, only the condition Ready changes; the rest keeps its last known values.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import hansa
from hansa.kube.language import quantity, tolerations
from hansa.kube.objects import Object
from hansa.model import capacity, keys
from hansa.nodes.lower_state import ARCH, OS, PRESSURES, LowerState
from hansa.nodes.settings import NodeSettings
from hansa.runtime import timestamps

SELECTOR = f"{keys.VIRTUAL_NODE}=true"

_FALSE_REASONS = {  # reasons of the status False, as kubelets set them
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
    "NetworkUnavailable": "LowerClusterHasNetwork",
}


@dataclass(frozen=True, slots=True)
class Changes:
    """A merge patch of a Node, and a strategic merge patch of its status."""

    node: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.node or self.status)


def is_ours(node: Object, settings: NodeSettings) -> bool:
    """Whether a Node is the virtual node of this lower cluster."""
    return node.labels.get(keys.VIRTUAL_NODE) == "true" and node.annotations.get(keys.NODE_LOWER) == settings.lower


def manifest(state: LowerState, now: datetime.datetime) -> Object:
    """The Node as it is created."""
    taint = state.settings.taint
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": state.settings.name, **_metadata(state)},
            "spec": {"taints": [_plain(taint)]} if taint else {},
            "status": {**_status_fields(state), "conditions": list(_conditions(state, {}, now))},
        }
    )


def changes(have: Object, state: LowerState, now: datetime.datetime, *, is_report_due: bool = False) -> Changes:
    """The patches to a Node. With `is_report_due`, conditions are written even if only their heartbeat time changed."""
    status = have.status
    former = {one.get("type", ""): one for one in status.get("conditions") or ()}
    wanted = list(_conditions(state, former, now))
    patch = {} if state.problem else _status_patch(status, _status_fields(state))
    if patch or is_report_due or any(_content(one) != _content(former.get(one["type"], {})) for one in wanted):
        patch["conditions"] = wanted
    return Changes({} if state.problem else _node_patch(have, state), {"status": patch} if patch else {})


def _metadata(state: LowerState) -> dict[str, dict[str, str]]:
    settings, nodes = state.settings, state.nodes
    labels = {
        keys.VIRTUAL_KUBELET_TYPE: "virtual-kubelet",
        "kubernetes.io/role": "agent",
        "kubernetes.io/hostname": settings.name,
        OS: nodes.os,
        ARCH: nodes.arch,
        f"beta.{OS}": nodes.os,
        f"beta.{ARCH}": nodes.arch,
        **nodes.labels,
        **settings.labels,
        keys.VIRTUAL_NODE: "true",
    }
    annotations = {
        keys.NODE_LOWER: settings.lower,
        keys.NODE_LABELS: ",".join(sorted(labels)),
        keys.NODE_TAINT: str(settings.taint or ""),
    }
    return {"labels": labels, "annotations": annotations}


def _node_patch(have: Object, state: LowerState) -> dict[str, Any]:
    want, put = _metadata(state), have.annotations.get(keys.NODE_LABELS, "").split(",")
    outdated: dict[str, str | None] = {key: None for key in have.labels if key in put and key not in want["labels"]}
    patch: dict[str, Any] = {
        "labels": outdated | _changed(have.labels, want["labels"]),
        "annotations": _changed(have.annotations, want["annotations"]),
    }
    patch = {"metadata": {name: change for name, change in patch.items() if change}}
    if keys.NODE_TAINT in patch["metadata"].get("annotations", ()):
        patch["metadata"]["resourceVersion"] = have.version  # the list of taints is replaced as a whole
        patch["spec"] = {"taints": _taints(have, state.settings.taint)}
    return patch if patch["metadata"] else {}


def _changed(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in want.items() if have.get(key) != value}


def _taints(have: Object, wanted: tolerations.Taint | None) -> list[Any]:
    """The taints with ours in place of the one that we set before; other taints are kept."""
    put = have.annotations.get(keys.NODE_TAINT)
    others = [one for one in have.spec.get("taints") or () if _taint_text(one) != put]
    if wanted is None:
        return others
    kept = [one for one in others if (one["key"], one.get("effect")) != (wanted.key, wanted.effect)]
    return [*kept, _plain(wanted)]


def _status_fields(state: LowerState) -> dict[str, Any]:
    """The status without conditions."""
    settings, nodes = state.settings, state.nodes
    # API servers and metrics-server dial the host name first by default; that of a virtual node is in no DNS.
    hostname = settings.internal_ip or settings.name
    addresses = {"InternalIP": settings.internal_ip, "ExternalIP": settings.external_ip, "Hostname": hostname}
    return {
        "capacity": capacity.resource_list(state.totals.capacity),
        "allocatable": capacity.resource_list(state.totals.allocatable),
        "addresses": [{"type": kind, "address": address} for kind, address in addresses.items() if address],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.port}},
        "nodeInfo": {
            "architecture": nodes.arch,
            "operatingSystem": nodes.os,
            "osImage": f"cluster {settings.lower}",
            "containerRuntimeVersion": f"hansa://{hansa.__version__}",
            **({"kubeletVersion": state.version} if state.version else {}),
        },
    }


def _status_patch(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name in ("capacity", "allocatable"):
        if change := _amounts_patch(have.get(name) or {}, want[name]):
            patch[name] = change
    if have.get("addresses") != want["addresses"]:
        patch["addresses"] = [*want["addresses"], {"$patch": "replace"}]
    for name in ("daemonEndpoints", "nodeInfo"):
        if change := _changed(have.get(name) or {}, want[name]):
            patch[name] = change
    return patch


def _amounts_patch(have: Mapping[str, str], want: Mapping[str, str]) -> dict[str, str | None]:
    changed = {name: text for name, text in want.items() if name not in have or _differ(have[name], text)}
    return {**changed, **{name: None for name in have if name not in want}}


def _differ(one: str, other: str) -> bool:
    return one != other and quantity.parse(one).nano != quantity.parse(other).nano


def _conditions(
    state: LowerState, former: Mapping[str, Mapping[str, Any]], now: datetime.datetime
) -> Iterable[dict[str, str]]:
    moment = timestamps.time(now)
    for kind, status, reason, message in _condition_values(state):
        before = former.get(kind, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        yield {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": since or moment,
        }


def _condition_values(state: LowerState) -> Iterable[tuple[str, str, str, str]]:
    if state.problem is not None:
        yield "Ready", "False", state.problem.reason, state.problem.message
        return
    nodes, lower = state.nodes, state.settings.lower
    schedulable = f"{nodes.schedulable} of {nodes.total} nodes of cluster {lower} are schedulable"
    yield "Ready", "True", "LowerClusterReady", schedulable
    for kind in PRESSURES:
        if kind in nodes.pressures:
            yield kind, "True", "AllLowerNodes", f"all ready nodes of cluster {lower} report {kind}"
        else:
            yield kind, "False", _FALSE_REASONS[kind], f"not all ready nodes of cluster {lower} report {kind}"


def _content(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(condition.get(name) for name in ("status", "reason", "message"))


def _plain(taint: tolerations.Taint) -> dict[str, str]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _taint_text(taint: Mapping[str, Any]) -> str:
    return str(tolerations.Taint(taint["key"], taint.get("value", ""), taint.get("effect", "")))
