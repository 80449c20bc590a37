"""What a kubelet reports about all pods of its node, reduced to the pods of one tenant, in the tenant's names. Pure.

Only the fields that are listed here are passed on: what super clusters add to pods is not the tenant's.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hansa.kube.objects import Malformed, NamespacedName, Object
from hansa.kubelet.pages import Page
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants import reported
from hansa.kubelet.tenants.tenant import Tenant
from hansa.kubelet.usage.readings import LARGEST
from hansa.model.stamp import Origin
from hansa.model.translation.common.pod import status
from hansa.model.translation.tenant import messages

Fields = dict[str, Any]
# What parsers raise for text that they cannot read.
_UNREADABLE = (msgspec.DecodeError, Malformed, RecursionError, ValueError, LookupError, TypeError, AttributeError)


class OwnPods:
    """The super pods of one tenant, by uid and by name."""

    def __init__(self, tenant: Tenant, pods: Iterable[Object]) -> None:
        self._key = tenant.key
        self._pods = [(pod, origin) for pod in pods if (origin := tenant.origin(pod))]
        self._by_uid = {pod.uid: origin for pod, origin in self._pods}
        self._by_name = {pod.key: origin for pod, origin in self._pods}

    def pods(self) -> bytes:
        """The answer to /pods; raises a Refusal if the super cluster's pods cannot be read."""
        with _readable(Page.PODS):
            return _pod_list(_pod(pod, origin, self._key) for pod, origin in self._pods)

    def report(self, page: Page, body: bytes) -> bytes:
        """The answer to a page that is made of the kubelet's own answer; raises a Refusal if that cannot be read."""
        if len(body) > LARGEST:
            raise Refusal(502, f"the kubelet sent more than {LARGEST >> 20} MiB of {page}")
        with _readable(page):
            match page:
                case Page.RUNNING_PODS:
                    return self._running(body)
                case Page.STATS:
                    return self._summary(body)
                case Page.METRICS:
                    return self._metrics(body)
        raise ValueError(page)

    def _running(self, body: bytes) -> bytes:
        found = msgspec.json.decode(body, type=reported.RunningPods).items or ()
        return _pod_list(
            {"metadata": _metadata(origin), "spec": one.spec}
            for one in found
            if (origin := self._by_uid.get(one.metadata.uid))
        )

    def _summary(self, body: bytes) -> bytes:
        """Of the node only its name."""
        found = msgspec.json.decode(body, type=reported.Summary)
        pods = [_statistics(one, origin) for one in found.pods or () if (origin := self._by_uid.get(one.pod_ref.uid))]
        return msgspec.json.encode({"node": found.node, "pods": pods})

    def _metrics(self, body: bytes) -> bytes:
        """The samples of the tenant's pods."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self._families(body)))
        return generate_latest(registry)

    def _families(self, body: bytes) -> Iterator[Metric]:
        for family in text_string_to_metric_families(body.decode(errors="replace")):
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


@contextlib.contextmanager
def _readable(page: Page) -> Iterator[None]:
    """The sentence has nothing of the answer, which is about pods of others, too."""
    try:
        yield
    except _UNREADABLE as error:
        raise Refusal(502, f"the kubelet's answer about {page} cannot be read ({type(error).__name__})") from None


def _pod_list(items: Iterable[Fields]) -> bytes:
    return msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(items)})


def _metadata(origin: Origin) -> Fields:
    return {"name": origin.name, "namespace": origin.namespace, "uid": origin.uid}


def _pod(pod: Object, origin: Origin, key: str) -> Fields:
    return {
        "metadata": _metadata(origin),
        "spec": pod.decode("spec", reported.Spec),
        "status": _status(messages.with_tenant_status(pod, origin.namespace, key)),
    }


def _status(pod: Object) -> Fields:
    """What is synced to the tenant's pod."""
    found = pod.status
    hidden, conditions = status.gates(pod), status.plain(found.get("conditions") or ())
    shown = [one for one in conditions if one["type"] not in hidden]
    return status.synced(found) | ({"conditions": shown} if shown else {})


def _statistics(found: reported.PodStatistics, origin: Origin) -> Fields:
    for one in found.volume or ():
        if one.pvc_ref is not None:
            one.pvc_ref.namespace = origin.namespace
    return reported.plain(found) | {"podRef": _metadata(origin)}
