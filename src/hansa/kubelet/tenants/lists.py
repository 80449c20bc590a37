"""What a kubelet reports about all pods of its node, reduced to the pods of one tenant, in the tenant's names. Pure.

Only the fields that are listed here are passed on: what super clusters add to pods is not the tenant's.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hansa.kube.objects import NamespacedName, Object
from hansa.kubelet.pages import Page
from hansa.kubelet.tenants.tenant import Tenant
from hansa.model.stamp import Origin

Fields = dict[str, Any]
_POD_SPEC = ("nodeName", "hostname", "restartPolicy", "terminationGracePeriodSeconds")
_CONTAINER = ("name", "image", "resources")
_POD_STATISTICS = (
    *("startTime", "cpu", "memory", "io", "network", "ephemeral-storage", "process_stats", "swap"),
    "containers",
)


class OwnPods:
    """The super pods of one tenant, by uid and by name."""

    def __init__(self, tenant: Tenant, pods: Iterable[Object]) -> None:
        self._pods = [(pod, origin) for pod in pods if (origin := tenant.origin(pod))]
        self._by_uid = {pod.uid: origin for pod, origin in self._pods}
        self._by_name = {pod.key: origin for pod, origin in self._pods}

    def pods(self) -> bytes:
        """The answer to /pods."""
        return _pod_list(_pod(pod, origin) for pod, origin in self._pods)

    def report(self, page: Page, body: bytes) -> bytes:
        """The answer to a page that is made of the kubelet's own answer."""
        match page:
            case Page.RUNNING_PODS:
                return self._running(body)
            case Page.STATS:
                return self._summary(body)
            case Page.METRICS:
                return self._metrics(body)
        raise ValueError(page)

    def _running(self, body: bytes) -> bytes:
        items = [
            one for one in msgspec.json.decode(body).get("items") or () if one["metadata"].get("uid") in self._by_uid
        ]
        return _pod_list(
            {"metadata": _metadata(self._by_uid[one["metadata"]["uid"]]), "spec": _spec(one.get("spec") or {})}
            for one in items
        )

    def _summary(self, body: bytes) -> bytes:
        """Of the node only its name."""
        found = msgspec.json.decode(body)
        pods = [
            _statistics(one, origin)
            for one in found.get("pods") or ()
            if (origin := self._by_uid.get(one["podRef"]["uid"]))
        ]
        return msgspec.json.encode({"node": {"nodeName": found["node"]["nodeName"]}, "pods": pods})

    def _metrics(self, body: bytes) -> bytes:
        """The samples of the tenant's pods."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self._families(body)))
        return generate_latest(registry)

    def _families(self, body: bytes) -> Iterator[Metric]:
        for family in text_string_to_metric_families(body.decode()):
            kept = Metric(family.name, family.documentation, family.type)
            for sample in family.samples:
                name = NamespacedName(sample.labels.get("namespace", ""), sample.labels.get("pod", ""))
                if origin := self._by_name.get(name):
                    labels = dict(sample.labels) | {"namespace": origin.namespace, "pod": origin.name}
                    kept.samples.append(sample._replace(labels=labels))
            if kept.samples:
                yield kept


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _pod_list(items: Iterable[Fields]) -> bytes:
    return msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(items)})


def _metadata(origin: Origin) -> Fields:
    return {"name": origin.name, "namespace": origin.namespace, "uid": origin.uid}


def _pod(pod: Object, origin: Origin) -> Fields:
    return {"metadata": _metadata(origin), "spec": _spec(pod.spec), "status": pod.status}


def _spec(spec: Mapping[str, Any]) -> Fields:
    containers = {
        name: [_only(_CONTAINER, one) for one in spec[name]]
        for name in ("initContainers", "containers", "ephemeralContainers")
        if spec.get(name)
    }
    return _only(_POD_SPEC, spec) | containers


def _statistics(found: Mapping[str, Any], origin: Origin) -> Fields:
    volumes = [_volume(one, origin) for one in found.get("volume") or ()]
    shown = {"podRef": _metadata(origin)} | _only(_POD_STATISTICS, found)
    return shown | ({"volume": volumes} if volumes else {})


def _volume(found: Mapping[str, Any], origin: Origin) -> Fields:
    if "pvcRef" not in found:
        return dict(found)
    return dict(found) | {"pvcRef": {"name": found["pvcRef"]["name"], "namespace": origin.namespace}}


def _only(names: Iterable[str], fields: Mapping[str, Any]) -> Fields:
    return {name: fields[name] for name in names if name in fields}
