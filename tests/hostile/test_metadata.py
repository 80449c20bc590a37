"""Annotations and labels that controllers of the super cluster would obey."""

import pytest

from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
ORDERS = {  # annotations, by kind
    resources.PODS: {"k8s.v1.cni.cncf.io/networks": "admins", "iam.amazonaws.com/role": "admin"},
    resources.SERVICES: {
        "service.beta.kubernetes.io/aws-load-balancer-internal": "false",
        "metallb.io/ip": "192.0.2.1",
    },
    resources.NAMESPACES: {"field.cattle.io/projectId": "local:p-1", "openshift.io/node-selector": "role=master"},
}
LABELS = {"istio.io/rev": "admins", "topology.kubernetes.io/zone": "a", "io.kubernetes.pod.namespace": "kube-system"}
HARMLESS = "kubectl.kubernetes.io/default-container"


async def test_no_controller_of_the_super_cluster_gets_an_order(tenants, mallory, below, namespace):
    for resource, orders in ORDERS.items():
        metadata = {"annotations": orders | {HARMLESS: "main"}, "labels": LABELS | {"app": "web"}}
        name, space = ("web", namespace) if resource.namespaced else (namespace, "")
        if resource is resources.NAMESPACES:
            await mallory.client.patch(resource, name, {"metadata": metadata})
        else:
            spec = pod()["spec"] if resource is resources.PODS else {"ports": [{"port": 80}]}
            await mallory.make(resource, name, space, metadata=metadata, spec=spec)
    web = (await mallory.phase("web", namespace), await below.there(resources.PODS, "web", mallory.below(namespace)))
    assert web[1]["metadata"]["labels"]["app"] == "web"
    assert web[1]["metadata"]["annotations"][HARMLESS] == "main"
    for resource, orders in ORDERS.items():
        name, space = ("web", mallory.below(namespace)) if resource.namespaced else (mallory.below(namespace), "")
        copy = (await below.there(resource, name, space))["metadata"]
        assert copy["annotations"].keys().isdisjoint(orders), resource
        assert copy["labels"].keys().isdisjoint(LABELS), resource


async def test_an_administrator_allows_annotations_for_one_tenant(mallory, alice, below, namespace, annotated):
    wanted = {"annotations": {"metallb.io/ip": "192.0.2.1", "iam.amazonaws.com/role": "admin"}}
    async with annotated(mallory, "synced-annotations=Service:metallb.io/*"):
        for tenant in (mallory, alice):
            await tenant.make(resources.SERVICES, "web", namespace, metadata=wanted, spec={"ports": [{"port": 80}]})

        def is_synced(copy):
            return copy["metadata"]["annotations"].get("metallb.io/ip") == "192.0.2.1"

        copy = await below.there(resources.SERVICES, "web", mallory.below(namespace), when=is_synced)
        assert "iam.amazonaws.com/role" not in copy["metadata"]["annotations"]
        copy = await below.there(resources.SERVICES, "web", alice.below(namespace))
        assert not is_synced(copy)
