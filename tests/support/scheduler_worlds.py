"""Random clusters of a few nodes, each with one pod to schedule, for comparisons with the stock kube-scheduler.

All worlds are in one real cluster. The label `world` and a zone label of their own keep them apart, so one run of
kube-scheduler decides about all of them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

Manifest = dict[str, Any]

HOST: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
RUNTIME_CLASS: Final[Manifest] = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "300m", "memory": "200Mi"}},
}
EFFECTS: Final = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
APPS: Final = ("a", "b", "c")
PORTS: Final = (8080, 8081)


@dataclass(slots=True)
class World:
    """A cluster of its own: nodes, pods on them, and the pod that is judged."""

    name: str
    namespaces: list[Manifest]
    nodes: list[Manifest] = field(default_factory=list)
    placed: list[Manifest] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)  # names of placed pods
    leaving: set[str] = field(default_factory=set)
    pod: Manifest = field(default_factory=dict)


def a_world(name: str, chance: random.Random) -> World:
    """A random world; the name is part of the names of all objects."""
    return _Maker(name, chance).world()


class _Maker:
    def __init__(self, name: str, chance: random.Random) -> None:
        self._name, self._chance = name, chance
        self._zone = f"{name}.example.com/zone"
        self._topologies = [self._zone, self._zone, HOST, f"{name}.example.com/rack"]
        self._namespaces = [f"{name}-x", f"{name}-y"]
        self._often = [*self._namespaces, self._namespaces[0], self._namespaces[0]]
        self._has_lost = chance.random() < 0.1  # has a node that is not ready

    def world(self) -> World:
        chance = self._chance
        world = World(self._name, [self._namespace(one) for one in self._namespaces])
        world.nodes = [self._node(number) for number in range(chance.randint(2, 7))]
        names = [one["metadata"]["name"] for one in world.nodes]
        world.placed = [self._placed(number, chance.choice(names)) for number in range(chance.randint(0, 12))]
        for one in world.placed:
            fate = chance.random()
            if fate < 0.15:
                (world.finished if fate < 0.05 else world.leaving).add(one["metadata"]["name"])
        world.pod = self._judged(names)
        return world

    def _namespace(self, name: str) -> Manifest:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"side": name[-1]}}}

    def _node(self, number: int) -> Manifest:
        chance, name = self._chance, f"{self._name}-{number}"
        labels = {"world": self._name, HOST: name, "id": f"m{chance.randrange(10**6)}"}
        for key, values, absent in (
            (self._zone, ("za", "zb", "zc"), 0.1),
            (f"{self._name}.example.com/rack", ("r1", "r2"), 0.2),
            ("disk", ("ssd", "hdd"), 0.2),
            ("size", ("1", "5", "9", "007", "big"), 0.2),
        ):
            if chance.random() >= absent:
                labels[key] = chance.choice(values)
        is_lost = self._has_lost and number == 0
        allocatable = {
            "cpu": chance.choice(("1500m", "2", "4", "8")),
            "memory": chance.choice(("1Gi", "3000M", "4Gi", "8Gi")),
            "pods": chance.choice(("110", "110", "110", "2", "1")),
        }
        for resource, values in (
            ("ephemeral-storage", ("10Gi", "1Gi")),
            ("example.com/gpu", ("0", "1", "2")),
            ("hugepages-2Mi", ("64Mi", "0")),
        ):
            if chance.random() < 0.6:
                allocatable[resource] = chance.choice(values)
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": chance.random() < 0.08, "taints": self._taints(is_lost=is_lost)},
            "status": {
                "capacity": allocatable,
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": "Unknown" if is_lost else "True"}],
            },
        }

    def _taints(self, *, is_lost: bool) -> list[Manifest]:
        chance = self._chance
        taints = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}] * is_lost
        for key in ("team", "gpu"):
            if chance.random() < 0.2:
                taints.append({"key": key, "value": chance.choice(("a", "b", "")), "effect": chance.choice(EFFECTS)})
        return taints

    def _placed(self, number: int, node: str) -> Manifest:
        chance = self._chance
        spec: Manifest = {"nodeName": node, "containers": self._containers(1, small=True)}
        if chance.random() < 0.3:
            spec["affinity"] = {"podAntiAffinity": {REQUIRED: self._terms(1)}}
        return self._pod(f"p{number}", spec)

    def _judged(self, nodes: list[str]) -> Manifest:
        chance = self._chance
        spec: Manifest = {"containers": self._containers(chance.randint(1, 2)), "nodeSelector": {"world": self._name}}
        features: list[Callable[[Manifest], None]] = [
            self._initialize,
            self._add_overhead,
            self._request_for_all,
            self._tolerate,
            self._tolerate,
            self._select,
            lambda spec: self._prefer(spec, nodes),
            self._be_near,
            self._be_apart,
            self._spread,
            self._spread,
            self._spread,
            self._listen,
        ]
        for feature in chance.sample(features, chance.randint(1, 4)):
            feature(spec)
        return self._pod("judged", spec)

    def _pod(self, name: str, spec: Manifest) -> Manifest:
        chance = self._chance
        labels = {"world": self._name, "app": chance.choice(APPS)}
        if chance.random() < 0.4:
            labels["tier"] = chance.choice(("front", "back"))
        metadata = {"name": name, "namespace": chance.choice(self._often), "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _containers(self, count: int, *, small: bool = False) -> list[Manifest]:
        return [self._container(f"c{number}", small=small) for number in range(count)]

    def _container(self, name: str, *, small: bool = False) -> Manifest:
        chance, requests, limits = self._chance, dict[str, str](), dict[str, str]()
        if chance.random() < 0.8:
            requests["cpu"] = chance.choice(("100m", "250m", "500m") if small else ("100m", "700m", "1", "1500m", "2"))
        if chance.random() < 0.7:
            requests["memory"] = chance.choice(("128Mi", "300M") if small else ("128Mi", "700Mi", "1Gi", "2Gi"))
        if chance.random() < 0.1:
            requests["ephemeral-storage"] = chance.choice(("1Gi", "2Gi", "500M"))
        for resource, values in (("example.com/gpu", ("1", "1", "2")), ("hugepages-2Mi", ("32Mi", "64Mi"))):
            if chance.random() < 0.04:
                limits[resource] = chance.choice(values)
        if "hugepages-2Mi" in limits:
            requests.setdefault("cpu", "100m")
        made: Manifest = {"name": name, "image": "i", "resources": {"requests": requests, "limits": limits}}
        if small and chance.random() < 0.25:
            made["ports"] = [self._port()]
        return made

    def _port(self) -> Manifest:
        chance = self._chance
        made: Manifest = {"containerPort": 80, "hostPort": chance.choice(PORTS)}
        if chance.random() < 0.4:
            made["hostIP"] = chance.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0"))
        if chance.random() < 0.3:
            made["protocol"] = chance.choice(("UDP", "TCP"))
        return made

    def _initialize(self, spec: Manifest) -> None:
        if "resources" in spec:  # containers may not request more than their pod
            return
        made = [self._container(f"i{number}") for number in range(self._chance.randint(1, 3))]
        for one in made:
            if self._chance.random() < 0.4:
                one["restartPolicy"] = "Always"
                if self._chance.random() < 0.3:
                    one["ports"] = [self._port()]
        spec["initContainers"] = made

    def _add_overhead(self, spec: Manifest) -> None:
        spec["runtimeClassName"] = "heavy"

    def _request_for_all(self, spec: Manifest) -> None:
        """Pod-level requests, at least as large as those of any container."""
        for one in (*spec["containers"], *spec.get("initContainers", ())):
            one["resources"] = {"requests": {"cpu": "100m"}}
        amounts = {"cpu": self._chance.choice(("1", "1500m", "2")), "memory": self._chance.choice(("1Gi", "2Gi"))}
        spec["resources"] = {"requests": amounts}
        spec.pop("initContainers", None)

    def _tolerate(self, spec: Manifest) -> None:
        chance = self._chance
        if not self._has_lost and chance.random() < 0.1:
            spec.setdefault("tolerations", []).append({"operator": "Exists"})
            return
        for key in chance.sample(("team", "gpu", "node.kubernetes.io/unschedulable"), chance.randint(1, 2)):
            made = {"key": key, "operator": "Exists"}
            if chance.random() < 0.5:
                made |= {"operator": "Equal", "value": chance.choice(("a", "b", ""))}
            if chance.random() < 0.5:
                made["effect"] = chance.choice(EFFECTS)
            spec.setdefault("tolerations", []).append(made)

    def _select(self, spec: Manifest) -> None:
        spec["nodeSelector"] |= {"disk": self._chance.choice(("ssd", "hdd"))}

    def _prefer(self, spec: Manifest, nodes: list[str]) -> None:
        chance = self._chance
        terms: list[Manifest] = []
        for _ in range(chance.randint(1, 2)):
            term: Manifest = {"matchExpressions": [self._condition() for _ in range(chance.randint(0, 2))]}
            if chance.random() < 0.25:
                operator = chance.choice(("In", "NotIn"))
                term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [chance.choice(nodes)]}]
            terms.append({key: value for key, value in term.items() if value})
        spec.setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}

    def _condition(self) -> Manifest:
        chance = self._chance
        operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
        if operator in ("Gt", "Lt"):
            return {"key": "size", "operator": operator, "values": [chance.choice(("0", "4", "9"))]}
        key, values = chance.choice(
            (("disk", ["ssd", "hdd"]), ("size", ["1", "big"]), (self._zone, ["za", "zb", "zc"]), ("none", ["x"]))
        )
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": chance.sample(values, chance.randint(1, len(values)))}

    def _terms(self, most: int) -> list[Manifest]:
        return [self._term() for _ in range(self._chance.randint(1, most))]

    def _term(self) -> Manifest:
        chance = self._chance
        made: Manifest = {"topologyKey": chance.choice(self._topologies)}
        if (selector := self._selector()) is not None:
            made["labelSelector"] = selector
            if chance.random() < 0.1 and "tier" not in str(selector):
                made[chance.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["tier"]
        if chance.random() < 0.3:
            made["namespaces"] = chance.sample(self._namespaces, chance.randint(1, 2))
        return made

    def _selector(self) -> Manifest | None:
        chance = self._chance
        match chance.randrange(8):
            case 0:
                return {"matchLabels": {"app": "nobody"}}
            case 1:
                return {}
            case 2:
                return {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [chance.choice(APPS)]}]}
            case 3:
                return {"matchExpressions": [{"key": "tier", "operator": chance.choice(("Exists", "DoesNotExist"))}]}
            case 4 if chance.random() < 0.3:
                return None
            case _:
                return {"matchLabels": {"app": chance.choice(APPS)}}

    def _be_near(self, spec: Manifest) -> None:
        spec.setdefault("affinity", {})["podAffinity"] = {REQUIRED: self._terms(2)}

    def _be_apart(self, spec: Manifest) -> None:
        spec.setdefault("affinity", {})["podAntiAffinity"] = {REQUIRED: self._terms(2)}

    def _spread(self, spec: Manifest) -> None:
        chance, made = self._chance, list[Manifest]()
        for topology in dict.fromkeys(chance.choice(self._topologies) for _ in range(chance.randint(1, 2))):
            one: Manifest = {
                "topologyKey": topology,
                "maxSkew": chance.choice((1, 1, 2)),
                "whenUnsatisfiable": chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": self._selector(),
            }
            if one["whenUnsatisfiable"] == "DoNotSchedule" and chance.random() < 0.3:
                one["minDomains"] = chance.randint(1, 4)
            if topology != HOST and chance.random() < 0.3:  # with Ignore, hosts of all worlds would count
                one["nodeAffinityPolicy"] = chance.choice(("Ignore", "Honor"))
            if chance.random() < 0.3:
                one["nodeTaintsPolicy"] = chance.choice(("Ignore", "Honor"))
            if one["labelSelector"] is not None and "tier" not in str(one) and chance.random() < 0.1:
                one["matchLabelKeys"] = ["tier"]
            made.append(one)
        spec["topologySpreadConstraints"] = made

    def _listen(self, spec: Manifest) -> None:
        spec["containers"][0]["ports"] = [self._port()]
