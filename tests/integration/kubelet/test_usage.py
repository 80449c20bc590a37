"""CPU and memory that a lower cluster has: from its metrics API, here a kind of objects with the same form."""

import contextlib
import random

import pytest

from eventually import eventually
from hansa.engine.cluster import Cluster
from hansa.kube import definitions, errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kubelet.usage.readings import Container, Reading
from hansa.kubelet.usage.source import RETRY_SECONDS, UsageSource
from hansa.runtime import metrics, tasks
from hansa.runtime.clock import SystemClock

METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", kind="PodMetrics")
OURS = {"hansa.dev/upper": "id"}


class LateClock(SystemClock):
    """A clock that tests set forward."""

    ahead = 0.0

    def now(self):
        return super().now() + self.ahead


@pytest.fixture
async def lower(client):
    injected = {"clock": SystemClock(), "random": random.Random(1), "metrics": metrics.Registry()}
    async with tasks.Supervisor(**injected) as supervisor:

        async def make(namespaces=None):
            made = Cluster("lower", client, supervisor=supervisor, namespaces=namespaces, **injected)
            await eventually(lambda: is_reachable(made))
            return made

        yield make


async def is_reachable(cluster):
    return not cluster.health.error


async def is_gone(client):
    with contextlib.suppress(errors.NotFound):
        assert await client.list(METRICS) is None
    return True


@pytest.fixture
async def metrics_api(client):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    made = Object.of(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": "pods.metrics.k8s.io",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
            },
            "spec": {
                "group": "metrics.k8s.io",
                "scope": "Namespaced",
                "names": {"plural": "pods", "kind": "PodMetrics"},
                "versions": [
                    {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                ],
            },
        }
    )
    await definitions.install(client, [made], field_manager="test")
    yield
    await client.delete(resources.CUSTOM_RESOURCE_DEFINITIONS, "pods.metrics.k8s.io")
    await eventually(lambda: is_gone(client))


def pod_metrics(name, namespace, cpu, labels):
    return Object.of(
        {
            "apiVersion": "metrics.k8s.io/v1beta1",
            "kind": "PodMetrics",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "timestamp": "2025-10-09T08:53:20Z",
            "window": "15s",
            "containers": [{"name": "app", "usage": {"cpu": cpu, "memory": "4Ki"}}],
        }
    )


async def test_the_metrics_api_is_read_for_our_pods_and_in_our_namespaces_only(client, namespace, lower, metrics_api):
    for name, labels in (("ours", OURS), ("other", {})):
        await client.create(METRICS, pod_metrics(name, namespace, "250m", labels))
    await client.create(METRICS, pod_metrics("elsewhere", "default", "1", OURS))
    mine = {Container(namespace, "ours", "app"): Reading(1760000000.0, 4096.0, cores=0.25)}
    some = UsageSource(await lower(frozenset({namespace})), "hansa.dev/upper=id", clock=SystemClock())
    assert await some.read([]) == mine
    every = UsageSource(await lower(), "hansa.dev/upper=id", clock=SystemClock())
    assert (await every.read([])).keys() == {*mine, Container("default", "elsewhere", "app")}


async def test_without_figures_there_are_none_and_they_are_asked_for_again_later(client, namespace, lower):
    clock = LateClock()
    source = UsageSource(await lower(), "hansa.dev/upper=id", clock=clock)
    assert await source.read(["no-such-node"]) == {}
    clock.ahead = RETRY_SECONDS
    assert await source.read(["no-such-node"]) == {}
