"""Ingresses for hosts of others, and PodDisruptionBudgets that keep nodes of the super cluster from being drained."""

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
CLASS = {"ingressClassName": "edge"}
BUCKET = {"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "b"}}


@pytest.fixture
async def offered(below):
    """An IngressClass that all tenants may name."""
    metadata = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}
    await below.make(resources.INGRESS_CLASSES, "edge", metadata=metadata, spec={"controller": "example.com/edge"})
    yield
    await below.client.delete(resources.INGRESS_CLASSES, "edge")


@pytest.mark.usefixtures("offered")
async def test_an_ingress_serves_no_host_that_no_administrator_gave(mallory, below, namespace, annotated):
    specs = {
        "all": CLASS | {"defaultBackend": BACKEND},
        "host": CLASS | {"rules": [{"host": "bank.example.org"}]},
        "bucket": CLASS | {"defaultBackend": BUCKET},
        "plain": {"rules": [{"host": "a.shop.example.com"}]},
    }
    async with annotated(mallory, "ingress-hosts=*.shop.example.com"):
        for name, spec in specs.items():
            await mallory.make(resources.INGRESSES, name, namespace, spec=spec)
        for name in specs:
            await mallory.event("Refused", name, namespace)
        tls = [{"hosts": ["a.shop.example.com"], "secretName": "admins"}]
        spec = CLASS | {"rules": [{"host": "a.shop.example.com"}], "tls": tls}
        await mallory.make(resources.INGRESSES, "own", namespace, spec=spec)
        where = mallory.below(namespace)
        await below.there(resources.INGRESSES, "own", where)
        secret = await below.there(resources.SECRETS, "admins", where)
        assert secret["metadata"]["annotations"]["hansa.dev/upper-name"] == f"{namespace}/admins"
    for name in specs:
        assert await below.look(resources.INGRESSES, name, where) is None


@pytest.mark.usefixtures("offered")
async def test_a_secret_of_the_super_cluster_serves_no_ingress_of_a_tenant(mallory, below, namespace, annotated):
    where = mallory.below(namespace)
    await below.there(resources.NAMESPACES, where)
    await below.make(resources.SECRETS, "wildcard", where, stringData={"tls.key": "admins"})
    async with annotated(mallory, "ingress-hosts=*"):
        spec = CLASS | {"rules": [{"host": "a.io"}], "tls": [{"hosts": ["a.io"], "secretName": "wildcard"}]}
        await mallory.make(resources.INGRESSES, "web", namespace, spec=spec)
        await mallory.event("NameTaken", "web", namespace)
        assert await below.look(resources.INGRESSES, "web", where) is None


async def test_a_budget_delays_a_drain_and_does_not_end_it(mallory, below, namespace):
    where, labels = mallory.below(namespace), {"app": "web"}
    spec = {"selector": {"matchLabels": labels}, "minAvailable": "100%"}
    for name in ("web", "other"):
        await mallory.make(resources.POD_DISRUPTION_BUDGETS, name, namespace, spec=spec)
    for name in ("a", "b"):
        await mallory.make(resources.PODS, name, namespace, metadata={"labels": labels}, spec=pod()["spec"])
    lies = {"status": {"desiredHealthy": 1000, "expectedPods": 1000, "currentHealthy": 1000, "disruptionsAllowed": 0}}
    await mallory.client.patch(
        resources.POD_DISRUPTION_BUDGETS, "other", lies, namespace=namespace, subresource="status"
    )
    for name in ("a", "b"):
        await mallory.phase(name, namespace)

    def allows_one(budget):
        return budget["spec"]["minAvailable"] <= 1 and budget.get("status", {}).get("disruptionsAllowed")

    await below.there(resources.POD_DISRUPTION_BUDGETS, "other", where, when=allows_one)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": where}}

    async def is_evicted():
        try:
            await below.client.call(resources.PODS, "a", "eviction", body=Object.of(eviction), namespace=where)
        except errors.NotFound:
            return True
        except errors.ApiError as error:
            raise AssertionError(str(error)) from None
        return True

    await eventually(is_evicted, within=60)
