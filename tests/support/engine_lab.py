"""A small mode and a running engine for tests of `engine`: pods placed by node name, ConfigMaps that they refer to."""

import random
from collections.abc import Iterator, Mapping
from typing import Any, Self

from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry
from hansa.engine.syncer import Syncer
from hansa.kube import resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import diff, keys, lifecycle, placement
from hansa.model.mode import Mode, PatchPart, Rule, patches_of
from hansa.model.pair import Key, Link
from hansa.runtime import backoff, metrics, tasks
from hansa.runtime import clock as clocks

QUICK = watching.Patience(idle=90, life=300, backoff=backoff.Backoff(first=0.02, factor=2, most=0.5, jitter=0.5))


def bare_pod(pod: Object, _link: Link) -> Object:
    """The step down of pods, as small as the API server allows."""
    spec = {name: value for name, value in pod.spec.items() if name not in ("nodeName", "priority", "preemptionPolicy")}
    spec |= {"automountServiceAccountToken": False, "serviceAccountName": "default", "serviceAccount": "default"}
    spec["volumes"] = [v for v in spec.get("volumes", ()) if not v["name"].startswith("kube-api-access")]
    for container in spec["containers"]:
        container["volumeMounts"] = [
            m for m in container.get("volumeMounts", ()) if not m["name"].startswith("kube-api-access")
        ]
    return pod.with_fields(spec=spec)


def status_up(upper: Object, lower: Object, _link: Link) -> list[PatchPart]:
    """The patch up of pods: the whole status, and the uid of the lower pod."""
    want = {name: value for name, value in lower.status.items() if name not in ("observedGeneration", "qosClass")}
    if not want.get("startTime"):
        return []
    for condition in want.get("conditions", ()):
        condition.pop("observedGeneration", None)
    have = {name: value for name, value in upper.status.items() if name in want}
    for condition in have.get("conditions", ()):
        condition.pop("observedGeneration", None)
    patch: dict[str, Any] = {}
    if change := diff.merge_patch(have, want):
        patch["status"] = change
    if upper.annotations.get(keys.LOWER_UID) != lower.uid:
        patch["metadata"] = {"annotations": {keys.LOWER_UID: lower.uid}}
    return [PatchPart(patch, "status")] if patch else []


def config_maps_of(pod: Object) -> Iterator[Key]:
    """References of a pod: the ConfigMaps of its volumes."""
    for volume in pod.spec.get("volumes", ()):
        if "configMap" in volume:
            yield Key("", resources.CONFIG_MAPS, pod.namespace, volume["configMap"]["name"])


SMALL = Mode(
    name="small",
    creates_namespaces=True,
    rules={
        rule.resource: rule
        for rule in (
            Rule(
                resources.PODS,
                down=(bare_pod,),
                up_patches=status_up,
                lifecycle=lifecycle.POD,
                placement=placement.by_node_name,
                references=config_maps_of,
            ),
            Rule(
                resources.CONFIG_MAPS,
                down_patches=patches_of("data", "binaryData"),
                placement=placement.with_users,
            ),
            Rule(
                resources.SERVICES,
                down=(lambda service, _: service.with_fields(spec={"ports": service.spec["ports"]}),),
                placement=placement.outside(lambda key: key.name == "kubernetes", placement.everywhere),
            ),
        )
    },
)


TOKENED = Mode(
    name="tokened",
    creates_namespaces=True,
    mints_tokens=True,
    rules={
        **SMALL.rules,
        resources.SECRETS: Rule(resources.SECRETS, down_patches=patches_of("data"), placement=placement.with_users),
        resources.SERVICE_ACCOUNTS: Rule(
            resources.SERVICE_ACCOUNTS, placement=placement.with_users, lifecycle=lifecycle.SHARED_COPY
        ),
    },
)


class Engine:
    """A running engine over clusters that tests add by name; an async context manager."""

    def __init__(self, *, seed: int = 0, mode: Mode = SMALL, clock: clocks.Clock | None = None, **options: Any) -> None:
        self.clock = clock or clocks.SystemClock()
        self.random, self.metrics = random.Random(seed), metrics.Registry()
        self.supervisor = tasks.Supervisor(clock=self.clock, random=self.random, metrics=self.metrics)
        self.registry = ClusterRegistry()
        self.syncer = Syncer(mode, self.registry, **self.injected(), **options)

    def injected(self) -> dict[str, Any]:
        """The keyword arguments that almost every component takes."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}

    def join(self, name: str, client: Client, *, namespaces: frozenset[str] | None = None) -> None:
        """Add a cluster; `registry.link` connects it."""
        cluster = Cluster(
            name,
            client,
            supervisor=self.supervisor,
            watch_patience=QUICK,
            namespaces=namespaces,
            **self.injected(),
        )
        self.registry.join(cluster)

    async def __aenter__(self) -> Self:
        self.supervisor.start("syncer", self.syncer.run)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.syncer.drain()
        await self.supervisor.close()
        for name in list(self.registry.clusters):
            await self.registry.leave(name)


def virtual_node(name: str) -> Object:
    """A Ready node without a kubelet."""
    now = "2026-01-01T00:00:00Z"
    return Object.of(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {
                "capacity": {"cpu": "1000", "memory": "1000Gi", "pods": "100000"},
                "allocatable": {"cpu": "1000", "memory": "1000Gi", "pods": "100000"},
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "R",
                        "lastHeartbeatTime": now,
                        "lastTransitionTime": now,
                    }
                ],
            },
        }
    )


def pod(name: str, node: str, *, namespace: str = "default", config_map: str = "", **metadata: Any) -> Object:
    """A pod that is bound to a node."""
    spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "main", "image": "registry.example/app:1"}]}
    spec["tolerations"] = [{"operator": "Exists"}]
    if config_map:
        spec["volumes"] = [{"name": "settings", "configMap": {"name": config_map}}]
    meta = {"name": name, "namespace": namespace, **metadata}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def config_map(
    name: str, *, namespace: str = "default", data: Mapping[str, str] | None = None, **metadata: Any
) -> Object:
    """A ConfigMap."""
    meta = {"name": name, "namespace": namespace, **metadata}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data or {"a": "1"}})


def namespace(name: str, **metadata: Any) -> Object:
    """A namespace."""
    return Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}})
