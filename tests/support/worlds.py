"""A pure model of API servers for one object, on which property tests run decisions until nothing changes.

It has names, uids, merge patches, the status subresource, finalizers and grace periods; caches are never stale.
"""

import copy
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import decision, keys, plan, stamp
from hansa.model.lookups import Found, Lookups
from hansa.model.mode import Mode, PatchPart
from hansa.model.pair import Grade, Key, Link, Pair, Unknown

HOME, UPPER_ID, NODE = "upper", "id-of-upper", "n1"
LATER = "2026-11-15T12:00:00Z"


def merged(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def status_up(upper: Object, lower: Object, _link: Link) -> Iterable[PatchPart]:
    """The patch up of the modes of these tests: status and uid of the lower object."""
    patch: dict[str, Any] = {}
    if upper.annotations.get(keys.LOWER_UID) != lower.uid:
        patch["metadata"] = {"annotations": {keys.LOWER_UID: lower.uid}}
    if upper.status != lower.status:
        patch["status"] = dict.fromkeys(upper.status) | lower.status
    return [PatchPart(patch, "status")] if patch else []


class Server:
    """One API server with the objects of one kind; each write returns whether the server accepted it."""

    def __init__(self, name: str, *, is_of_pods: bool, numbers: "itertools.count[int]") -> None:
        self.name, self.is_of_pods, self.numbers = name, is_of_pods, numbers
        self.objects: dict[NamespacedName, dict[str, Any]] = {}

    def get(self, place: NamespacedName) -> Object | None:
        found = self.objects.get(place)
        return None if found is None else Object.of(found)

    def create(self, manifest: Mapping[str, Any]) -> None:
        obj = copy.deepcopy(dict(manifest))
        place = NamespacedName(obj["metadata"]["namespace"], obj["metadata"]["name"])
        if place in self.objects:
            return
        number = next(self.numbers)
        obj["metadata"] |= {"uid": f"{self.name}-{number}", "resourceVersion": str(number)}
        if self.is_of_pods:
            obj.setdefault("status", {"phase": "Pending"})
        self.objects[place] = obj

    def patch(self, obj: Object, patch: Mapping[str, Any], subresource: str = "") -> None:
        if (found := self._this_one(obj)) is None:
            return
        allowed = {"metadata", "status"} if subresource == "status" else patch.keys() - {"status"}
        changed = merged(found, {name: value for name, value in patch.items() if name in allowed})
        if subresource == "resize" and _without_sizes(changed) != _without_sizes(found):
            return
        if changed != found:
            changed["metadata"]["resourceVersion"] = str(next(self.numbers))
            self.objects[obj.key] = changed

    def set_finalizers(self, obj: Object, finalizers: Iterable[str]) -> None:
        found = self._this_one(obj)
        if found is None or found["metadata"]["resourceVersion"] != obj.version:
            return
        metadata = found["metadata"]
        metadata |= {"finalizers": list(finalizers), "resourceVersion": str(next(self.numbers))}
        if not metadata["finalizers"] and metadata.get("deletionGracePeriodSeconds") == 0:
            del self.objects[obj.key]

    def bind(self, obj: Object, node: str) -> None:
        found = self._this_one(obj)
        if found is not None and "nodeName" not in found["spec"] and "deletionTimestamp" not in found["metadata"]:
            found["spec"] = found["spec"] | {"nodeName": node}
            found["metadata"]["resourceVersion"] = str(next(self.numbers))

    def delete(self, obj: Object, grace: int | None = None) -> None:
        if (found := self._this_one(obj)) is None:
            return
        metadata = found["metadata"]
        is_at_once = not self.is_of_pods or found["status"].get("phase") in ("Succeeded", "Failed")
        period = 0 if is_at_once else 30 if grace is None else grace
        if "deletionTimestamp" in metadata:
            period = min(period, metadata["deletionGracePeriodSeconds"])
        if period == 0 and not metadata.get("finalizers"):
            del self.objects[obj.key]
            return
        deletion = {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": period}
        if not deletion.items() <= metadata.items():
            metadata |= deletion | {"resourceVersion": str(next(self.numbers))}

    def pass_time(self) -> bool:
        """Remove finalizers and end deleted pods, as controllers and kubelets do; whether anything changed."""
        leaving = [place for place, obj in self.objects.items() if "deletionTimestamp" in obj["metadata"]]
        for place in leaving:
            del self.objects[place]
        return bool(leaving)

    def _this_one(self, obj: Object) -> dict[str, Any] | None:
        found = self.objects.get(obj.key)
        return found if found is not None and found["metadata"]["uid"] == obj.uid else None


class World:
    """One upper name in an upper cluster and some lower clusters, and the writes of the engine."""

    def __init__(self, mode: Mode, key: Key, *, lowers: Iterable[str], intents: Mapping[str, Grade]) -> None:
        self.mode, self.key, self.lowers = mode, key, tuple(lowers)
        self.intents: Mapping[str, Grade] | Unknown = intents
        self.blocked: Mapping[str, str] = {}
        self.hidden: set[str] = set()
        self.nodes: set[str] = set()  # of the upper cluster
        self.writes: list[plan.Write] = []
        numbers = itertools.count(1)
        is_of_pods = key.resource == resources.PODS
        self.servers = {c: Server(c, is_of_pods=is_of_pods, numbers=numbers) for c in (HOME, *self.lowers)}
        self.linked = set(self.lowers)
        self.settings: object = None  # of the links

    def __repr__(self) -> str:
        found = {name: list(server.objects.values()) for name, server in self.servers.items()}
        return f"World({self.key}, {self.intents}, hidden={self.hidden}, {found})"

    @property
    def home(self) -> Server:
        return self.servers[HOME]

    @property
    def upper(self) -> Object | None:
        return self.home.get(NamespacedName(self.key.namespace, self.key.name))

    def place(self, cluster: str) -> NamespacedName:
        return self.mode.lower_name(self.key, self.uid, Link(HOME, UPPER_ID, cluster))

    @property
    def uid(self) -> str:
        """The uid of the upper object, empty if there is none."""
        return "" if self.upper is None else self.upper.uid

    @property
    def links(self) -> dict[str, Link]:
        """The links, with the node that a rule reads."""
        node = {"kind": "Node", "metadata": {"name": NODE}}
        name = resources.NODES, NamespacedName("", NODE)
        read = Lookups({name: Found(Object.of(node) if NODE in self.nodes else None, None)})
        return {c: Link(HOME, UPPER_ID, c, self.settings, lookups=read) for c in self.lowers if c in self.linked}

    def lower(self, cluster: str) -> Object | None:
        return self.servers[cluster].get(self.place(cluster))

    def copies(self) -> dict[str, Object]:
        """The lower objects that are marked as copies of this upper one, in this or a former life."""
        found = {cluster: self.lower(cluster) for cluster in self.lowers}
        return {c: o for c, o in found.items() if o is not None and self.is_ours(o)}

    def leftovers(self, cluster: str) -> tuple[Object, ...]:
        """Copies of former upper objects, where the lower name depends on the uid."""
        found = (Object.of(obj) for obj in self.servers[cluster].objects.values())
        return tuple(one for one in found if self.is_ours(one) and one.key != self.place(cluster))

    def foreign(self) -> set[str]:
        """The clusters where another object has the name."""
        return {c for c in self.lowers if self.lower(c) is not None} - self.copies().keys()

    def is_ours(self, obj: Object) -> bool:
        origin = stamp.of(obj)
        ours = UPPER_ID, self.key.namespace, self.key.name
        return origin is not None and (origin.upper, origin.namespace, origin.name) == ours

    def pair(self) -> Pair:
        """The pair, from the current state of all servers."""
        sides: dict[str, Object | Unknown | None] = {}
        for cluster in self.lowers:
            seen = self.lower(cluster)
            sides[cluster] = Unknown("no answer", seen) if cluster in self.hidden else seen
        upper = Unknown("no answer") if HOME in self.hidden else self.upper
        left = {c: found for c in self.lowers if c not in self.hidden and (found := self.leftovers(c))}
        return Pair(self.key, upper, self.links, sides, self.intents, self.blocked, leftovers=left)

    def round(self, *, at_most: int = 1000) -> int:
        """Decide and write once, and crash after `at_most` writes; the number of planned writes."""
        planned = decision.decide(self.pair(), self.mode).writes
        for action in planned[:at_most]:
            self.write(action)
        return len(planned)

    def write(self, action: plan.Write) -> None:
        self.writes.append(action)
        server = self.servers[action.cluster]
        if action.cluster != HOME and not isinstance(action, plan.Create):
            assert self.is_ours(action.obj), f"something foreign is touched: {action}"
        match action:
            case plan.Create():
                server.create(action.obj.to_dict())
            case plan.Patch():
                server.patch(action.obj, action.patch, action.subresource)
            case plan.Delete():
                server.delete(action.obj, action.grace)
            case plan.SetFinalizers():
                server.set_finalizers(action.obj, action.finalizers)
            case plan.Bind():
                assert action.node in self.nodes, "it is bound to a node that is not there"
                server.bind(action.obj, action.node)

    def settle(self, *, most: int = 12) -> None:
        """Run rounds, and let time pass between them, until no write is planned."""
        for _ in range(most):
            planned = self.round()
            passed = [server.pass_time() for name, server in self.servers.items() if name != HOME]
            if not planned and not any(passed):
                return
        raise AssertionError(f"not settled after {most} rounds; the last writes: {self.writes[-4:]}")


def _without_sizes(pod: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in one.items() if k != "resources"} for one in pod["spec"]["containers"]]
