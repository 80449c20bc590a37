"""A virtual node as the API sees it, computed from facts: the Node, and what to write where it differs. Pure.

While the lower cluster is in trouble only the condition Ready tells so; all else stays as it was last known.
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

SELECTOR = f"{keys.VIRTUAL_NODE}=true"

_CALM = {  # the reasons that kubelets give
    "MemoryPressure": "KubeletHasSufficientMemory",
    "DiskPressure": "KubeletHasNoDiskPressure",
    "PIDPressure": "KubeletHasSufficientPID",
    "NetworkUnavailable": "LowerClusterHasNetwork",
}


@dataclass(frozen=True, slots=True)
class Changes:
    """What to write to make a Node tell the facts: a merge patch, and a strategic one of its status."""

    node: Mapping[str, Any] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.node or self.status)


def is_ours(node: Object, settings: NodeSettings) -> bool:
    """Whether we made this Node, for this lower cluster."""
    return node.labels.get(keys.VIRTUAL_NODE) == "true" and node.annotations.get(keys.NODE_LOWER) == settings.lower


def manifest(facts: LowerState, now: datetime.datetime) -> Object:
    """The Node as it is made."""
    taint = facts.settings.taint
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": facts.settings.name, **_metadata(facts)},
            "spec": {"taints": [_plain(taint)]} if taint else {},
            "status": {**_told(facts), "conditions": list(_conditions(facts, {}, now))},
        }
    )


def changes(have: Object, facts: LowerState, now: datetime.datetime, *, is_report_due: bool = False) -> Changes:
    """What differs. A report tells the conditions again even if nothing does, so that people see that we live."""
    status = have.status
    former = {one.get("type", ""): one for one in status.get("conditions") or ()}
    wanted = list(_conditions(facts, former, now))
    patch = {} if facts.trouble else _status_patch(status, _told(facts))
    if patch or is_report_due or any(_says(one) != _says(former.get(one["type"], {})) for one in wanted):
        patch["conditions"] = wanted
    return Changes({} if facts.trouble else _node_patch(have, facts), {"status": patch} if patch else {})


def _metadata(facts: LowerState) -> dict[str, dict[str, str]]:
    settings, landscape = facts.settings, facts.landscape
    labels = {
        keys.VIRTUAL_KUBELET_TYPE: "virtual-kubelet",
        "kubernetes.io/role": "agent",
        "kubernetes.io/hostname": settings.name,
        OS: landscape.os,
        ARCH: landscape.arch,
        f"beta.{OS}": landscape.os,
        f"beta.{ARCH}": landscape.arch,
        **landscape.places,
        **settings.labels,
        keys.VIRTUAL_NODE: "true",
    }
    annotations = {
        keys.NODE_LOWER: settings.lower,
        keys.NODE_LABELS: ",".join(sorted(labels)),
        keys.NODE_TAINT: str(settings.taint or ""),
    }
    return {"labels": labels, "annotations": annotations}


def _node_patch(have: Object, facts: LowerState) -> dict[str, Any]:
    want, put = _metadata(facts), have.annotations.get(keys.NODE_LABELS, "").split(",")
    outdated: dict[str, str | None] = {key: None for key in have.labels if key in put and key not in want["labels"]}
    patch: dict[str, Any] = {
        "labels": outdated | _changed(have.labels, want["labels"]),
        "annotations": _changed(have.annotations, want["annotations"]),
    }
    patch = {"metadata": {name: change for name, change in patch.items() if change}}
    if keys.NODE_TAINT in patch["metadata"].get("annotations", ()):
        patch["metadata"]["resourceVersion"] = have.version  # the list of taints is replaced as a whole
        patch["spec"] = {"taints": _taints(have, facts.settings.taint)}
    return patch if patch["metadata"] else {}


def _changed(have: Mapping[str, Any], want: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in want.items() if have.get(key) != value}


def _taints(have: Object, wanted: tolerations.Taint | None) -> list[Any]:
    """Ours in place of the one that we put before, and those of others."""
    put = have.annotations.get(keys.NODE_TAINT)
    others = [one for one in have.spec.get("taints") or () if _spelled(one) != put]
    if wanted is None:
        return others
    kept = [one for one in others if (one["key"], one.get("effect")) != (wanted.key, wanted.effect)]
    return [*kept, _plain(wanted)]


def _told(facts: LowerState) -> dict[str, Any]:
    """The status without conditions."""
    settings, landscape = facts.settings, facts.landscape
    addresses = {"InternalIP": settings.internal_ip, "ExternalIP": settings.external_ip, "Hostname": settings.name}
    return {
        "capacity": capacity.spelled(facts.totals.capacity),
        "allocatable": capacity.spelled(facts.totals.allocatable),
        "addresses": [{"type": kind, "address": address} for kind, address in addresses.items() if address],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": settings.port}},
        "nodeInfo": {
            "architecture": landscape.arch,
            "operatingSystem": landscape.os,
            "osImage": f"cluster {settings.lower}",
            "containerRuntimeVersion": f"hansa://{hansa.__version__}",
            **({"kubeletVersion": facts.version} if facts.version else {}),
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
    facts: LowerState, former: Mapping[str, Mapping[str, Any]], now: datetime.datetime
) -> Iterable[dict[str, str]]:
    moment = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    for kind, status, reason, message in _sentences(facts):
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


def _sentences(facts: LowerState) -> Iterable[tuple[str, str, str, str]]:
    if facts.trouble is not None:
        yield "Ready", "False", facts.trouble.reason, facts.trouble.message
        return
    landscape, lower = facts.landscape, facts.settings.lower
    room = f"{landscape.open_nodes} of {landscape.nodes} nodes of cluster {lower} take pods"
    yield "Ready", "True", "LowerClusterReady", room
    for kind in PRESSURES:
        if kind in landscape.pressures:
            yield kind, "True", "AllLowerNodes", f"all ready nodes of cluster {lower} tell so"
        else:
            yield kind, "False", _CALM[kind], f"not on all nodes of cluster {lower}"


def _says(condition: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(condition.get(name) for name in ("status", "reason", "message"))


def _plain(taint: tolerations.Taint) -> dict[str, str]:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _spelled(taint: Mapping[str, Any]) -> str:
    return str(tolerations.Taint(taint["key"], taint.get("value", ""), taint.get("effect", "")))
