"""Worlds of forecasts, made of objects without a cluster; used by unit tests."""

from typing import Any

from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, tenant_names
from hansa.modes import multi_scheduler_settings
from hansa.scheduling import snapshot
from hansa.scheduling.forecasting.forecast import Forecast
from hansa.scheduling.forecasting.pool import PoolWorld, Space, SuperCluster
from hansa.scheduling.forecasting.pool_forecast import PoolForecast
from hansa.scheduling.forecasting.virtual_node_world import VirtualNodeWorld
from hansa.scheduling.forecasting.virtual_nodes import VirtualNodes
from hansa.scheduling.persistent_map import PersistentMap
from hansa.scheduling.slicing.placements import Holding
from scheduling_things import a_node, a_pod

PROVIDER = {"key": keys.PROVIDER_TAINT, "operator": "Exists"}
SHORT = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
TENANT = "default-123456-blue"


def owned(pod: Object, kind: str = "ReplicaSet") -> Object:
    """The pod with a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "owner", "uid": "u", "controller": True}
    described = pod.to_dict()
    described["metadata"]["ownerReferences"] = [owner]
    return Object.of(described)


def a_virtual_node(cluster: str, *, cpu: str = "100", **more: Any) -> Object:
    """The virtual node of a cluster."""
    labels = {keys.CLUSTER_ID: cluster, keys.VIRTUAL_NODE: "true"}
    taint = {"key": keys.PROVIDER_TAINT, "value": "k8s"}
    return a_node(f"vn-{cluster}", cpu=cpu, labels=labels, taints=[taint], **more)


def virtual_nodes(above: list[Object], **lowers: list[Object]) -> VirtualNodes:
    """Clusters with these nodes and pods; each has a virtual node, in addition to what is above."""
    nodes = [one for one in above if one.kind == "Node"] + [a_virtual_node(name) for name in lowers]
    upper = snapshot.of("upper", nodes, (one for one in above if one.kind == "Pod"))
    below = {name: _snapshot(name, things) for name, things in lowers.items()}
    return VirtualNodes(upper, below, multi_scheduler_settings.lower_of, multi_scheduler_settings.request_of)


def virtual_world(above: list[Object], **lowers: list[Object]) -> VirtualNodeWorld:
    """The same for forecasts."""
    return VirtualNodeWorld(virtual_nodes(above, **lowers))


def a_virtual_pod(name: str, *, on: str = "", **more: Any) -> Object:
    """A pod that tolerates virtual nodes; `on` is the cluster of its virtual node."""
    tolerations = more.pop("tolerations", [PROVIDER])
    return a_pod(name, on=f"vn-{on}" if on else "", tolerations=tolerations, **more)


def _snapshot(name: str, things: list[Object]) -> snapshot.Snapshot:
    return snapshot.of(
        name, (one for one in things if one.kind == "Node"), (one for one in things if one.kind == "Pod")
    )


def a_space(name: str, *, cpu: str, slices: dict[str, int] | None = None, slice_cpu: str = "1") -> Space:
    """A namespace of the tenant with a quota, and slices of one CPU by the last plan."""
    placements = "".join(f'"{cluster}": {count},' for cluster, count in (slices or {}).items()).rstrip(",")
    annotations = {keys.SLICE: f'{{"cpu": "{slice_cpu}"}}'} | ({keys.PLACEMENTS: f"{{{placements}}}"} if slices else {})
    namespace = Object.of(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}
    )
    metadata = {"name": "all", "namespace": name}
    quota = Object.of(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"cpu": cpu}}}
    )
    return Space(TENANT, namespace, (quota,), Holding(slices, {"cpu": 10**9}) if slices else None)


def a_tenant_pod(name: str, *, cluster: str = "", on: str = "", **more: Any) -> Object:
    """A pod of the tenant, assigned to a super cluster, and maybe bound."""
    pod = a_pod(name, on=f"{cluster}.{on}" if on else "", **more)
    return pod.with_metadata(annotations={keys.SUPER_CLUSTER: cluster} if cluster else {})


def pool_forecast(spaces: list[Space], pods: list[Object], **supers: list[Object]) -> PoolForecast:
    """A pool with these nodes; the copies of bound pods are made."""
    copies: dict[str, list[Object]] = {name: [] for name in supers}
    for pod in pods:
        cluster, node = pod.annotations.get(keys.SUPER_CLUSTER, ""), pod.spec.get("nodeName", "").partition(".")[2]
        if node:
            copies[cluster].append(_copy(pod, node))
    found = {name: SuperCluster(_snapshot(name, [*things, *copies[name]])) for name, things in supers.items()}
    named = {NamespacedName(f"{TENANT}/{pod.namespace}", pod.name): pod for pod in pods}
    holdings = {one.ref: one.planned for one in spaces if one.planned is not None}
    return PoolForecast(
        PoolWorld(found, {one.ref: one for one in spaces}, PersistentMap.of(named), holdings), {TENANT: "default/blue"}
    )


def _copy(pod: Object, node: str) -> Object:
    namespace = tenant_names.super_namespace(TENANT, pod.namespace)
    bound = pod.with_fields(spec={**pod.spec, "nodeName": node})
    return bound.with_metadata(namespace=namespace, labels={keys.UPPER: TENANT})


def fates(found: Forecast) -> dict[str, tuple[str, str]]:
    """Of each pod by name: its fate, and where it would be."""
    return {one.pod.partition("/")[2]: (one.fate.value, one.then) for one in found.outcomes}
