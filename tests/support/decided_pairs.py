"""Pairs of two clusters for tables of decisions, and their actions as lines."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import decision, keys, lifecycle, plan, stamp
from hansa.model.lookups import Found, Lookups
from hansa.model.mode import Mode, Rule, patches_of
from hansa.model.pair import Grade, Key, Link, Pair, Side
from worlds import status_up

SETTINGS = Resource("", "v1", "configmaps")
CLAIMS = Resource("", "v1", "persistentvolumeclaims")
ACCOUNTS = Resource("", "v1", "serviceaccounts")
GUESTS, ROBOTS = Resource("test", "v1", "guests"), Resource("test", "v1", "robots")
RULES = {
    resource: Rule(resource, down_patches=patches_of("spec"), up_patches=status_up, lifecycle=life)
    for resource, life in {
        resources.PODS: lifecycle.POD,
        SETTINGS: lifecycle.COPY,
        CLAIMS: lifecycle.DATA,
        ACCOUNTS: lifecycle.SHARED_COPY,
        resources.NAMESPACES: lifecycle.NAMESPACE,
        GUESTS: lifecycle.COPY,
        ROBOTS: lifecycle.POD,
    }.items()
}
RULES[GUESTS] = replace(RULES[GUESTS], check=lambda guest, _: "it is too big" if guest.spec["v"] == "big" else "")
RULES[ROBOTS] = replace(
    RULES[ROBOTS], bound_node=lambda robot: robot.spec.get("nodeName", ""), down_patches=lambda *_: ()
)
RULES[resources.NODES] = Rule(resources.NODES)
MODE = Mode(name="test", rules=RULES)


NODE = Object.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
# The upper cluster has the node n1, and no n2.
NODES = Lookups(
    {
        (resources.NODES, NamespacedName("", "n1")): Found(NODE, None),
        (resources.NODES, NamespacedName("", "n2")): Found(None, None),
    }
)
LINKS = {name: Link("up", "id-of-up", name, lookups=NODES) for name in ("a", "b")}
HERE = {"a": Grade.CHOSEN}
LEAVING = {"deletionTimestamp": "2026-11-15T12:00:00Z"}
RUNNING: dict[str, Any] = {"phase": "Running", "startTime": "2026-11-15T11:00:00Z"}


def upper(*, status: Mapping[str, Any] | None = None, spec: str = "1", **metadata: Any) -> Object:
    """An upper object."""
    named = {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"} | metadata
    status = {"phase": "Pending"} if status is None else status
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": named, "spec": {"v": spec}, "status": status})


def synced(lower_uid: str = "l1", **more: Any) -> Object:
    """An upper pod whose lower one was seen to run."""
    return upper(**{"status": RUNNING, "annotations": {keys.LOWER_UID: lower_uid}} | more)


def lower(
    origin: str = "u1", *, status: Mapping[str, Any] = RUNNING, spec: str = "1", upper_id: str = "id-of-up", **meta: Any
) -> Object:
    """Its copy, in the lower cluster a."""
    plain = upper(status=status, spec=spec)
    marked = stamp.put(plain, stamp.Origin(upper_id, origin, "shop", "web")).to_dict()
    marked["metadata"] |= {"uid": "l1"} | meta
    return Object.of(marked)


def foreign() -> Object:
    """An object without our stamp."""
    return upper(uid="x1")


def decided(
    above: Side, below: Mapping[str, Side], intents: Any = HERE, *, of: Resource = resources.PODS, **more: Any
) -> list[str]:
    """The actions for a pair, as lines."""
    return [line(action) for action in actions(above, below, intents, of=of, **more)]


def actions(
    above: Side, below: Mapping[str, Side], intents: Any = HERE, *, of: Resource, **more: Any
) -> tuple[plan.Action, ...]:
    """The actions for a pair."""
    pair = Pair(Key("up", of, "shop", "web"), above, LINKS, below, intents=intents, **more)
    return decision.decide(pair, MODE).actions


def line(action: plan.Action) -> str:
    """An action as a line."""
    match action:
        case plan.Delete():
            return f"delete {action.obj.uid} in {action.cluster}, grace {action.grace}"
        case plan.Patch():
            part = f"/{action.subresource}" if action.subresource else ""
            return f"patch {action.obj.uid}{part} in {action.cluster}"
        case plan.Bind():
            return f"bind {action.obj.uid} to {action.node}"
        case plan.Create() | plan.Conflict() | plan.Refuse():
            return f"{type(action).__name__.lower()} in {action.cluster}"
    return "wait"
