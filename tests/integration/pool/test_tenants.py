"""Tenants of a pool: a deleted tenant leaves nothing behind, and a single tenant has a federation."""

import pytest

import programs
from eventually import eventually
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.tenancy import api
from hansa.tenancy.syncing import service_ranges
from league import fresh_name
from tenant_league import clusters_up, pod

pytestmark = pytest.mark.timeout(600)  # the first one begins with three clusters, maybe on a busy machine
SCHEDULER = "scheduler.tenancy.x-k8s.io"
WITHIN = 120.0
OURS = {"tenancy.x-k8s.io", "cluster.x-k8s.io"}  # API groups of tenants and super clusters
APP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {colour: blue}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "example.com/web:1", resources: {limits: {cpu: 100m}}}
"""


@pytest.fixture
async def green(pool, fleet, kubectl):
    """Another tenant of the pool."""
    async with clusters_up(fleet, kubectl, [ClusterSpec("green", scheduler=False, lift_limits=True)]) as made:
        yield await pool.announce("green", made["green"])
        await pool.meta.kubectl("delete", "vc", "green", "--ignore-not-found")


async def test_a_deleted_tenants_objects_are_deleted_in_every_super_cluster_and_no_others(pool, green, namespace):
    foreign = f"{green.key}-{fresh_name('foreign')}"
    await pool.namespace(namespace, "r1", "r2")
    placements = {"annotations": {f"{SCHEDULER}/placements": '{"r1":1,"r2":1}'}}
    made = await green.make(resources.NAMESPACES, "app", metadata=placements)
    await pool.decide("app", made["metadata"]["uid"], "r1", "r2", vc="green")
    await green.there(resources.SERVICE_ACCOUNTS, "default", "app")
    await green.make(resources.CONFIG_MAPS, "c", "app")
    stays = {}
    for name, side in pool.supers.items():
        await side.make(resources.NAMESPACES, foreign)
        await pool.pod(namespace, f"in-{name}", name)
        fields = pod(metadata={"annotations": {f"{SCHEDULER}/superCluster": name}})
        await green.make(resources.PODS, f"in-{name}", "app", **fields)
        await green.phase(f"in-{name}", "app")
        await side.there(resources.CONFIG_MAPS, "c", green.below("app"))
        stays[name] = (await pool.meta.phase(f"in-{name}", namespace))["metadata"]["uid"]
    await pool.meta.client.delete(api.VIRTUAL_CLUSTERS, "green", namespace="default")
    for side in pool.supers.values():
        await eventually(lambda side=side: _has_only(side, green.key, foreign), within=WITHIN)
        await side.gone(service_ranges.SERVICE_CIDRS, f"{green.key}-kubernetes")
        await side.client.delete(resources.NAMESPACES, foreign)
    for name, uid in stays.items():
        assert (await pool.meta.phase(f"in-{name}", namespace))["metadata"]["uid"] == uid
        await pool.supers[name].phase(f"in-{name}", pool.tenant.below(namespace))
    assert await green.look(resources.PODS, "in-r1", "app"), "what is the tenant's own stays with it"


async def _has_only(side, key, foreign):
    names = {one.name for one in (await side.client.list(resources.NAMESPACES)).items if one.name.startswith(key)}
    assert names == {foreign}, f"{side.name} has {names}"
    return True


async def test_one_tenant_has_a_federation_without_a_federated_type(pool, namespace, tmp_path):
    meta, below = pool.meta, pool.tenant.below(namespace)
    assert len((await meta.client.list(api.VIRTUAL_CLUSTERS)).items) == 1
    definitions = await meta.kubectl.get("customresourcedefinitions")
    assert {one["spec"]["group"] for one in definitions["items"]} == OURS

    async def everywhere(*what, is_so):
        for side in pool.supers.values():
            await eventually(lambda side=side: _is(side, below, *what, is_so=is_so), within=WITHIN)

    config = str(meta.cluster.kubeconfig)
    async with programs.hansa("vc-scheduler", "--kubeconfig", config, log=tmp_path / "vc-scheduler.log"):
        await meta.kubectl("create", "namespace", namespace)
        await meta.kubectl("annotate", "namespace", namespace, f'{SCHEDULER}/slice={{"cpu":"100m"}}')
        await meta.kubectl("create", "quota", "all", "-n", namespace, "--hard=cpu=400m")
        await meta.kubectl("apply", "-n", namespace, "-f", "-", stdin=APP)
        await meta.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=120s")
        await everywhere("pods", is_so=lambda found: [_image(one) for one in found] == ["example.com/web:1"] * 2)
        await everywhere("services", "web", is_so=lambda found: found["spec"]["selector"]["app"] == "web")
        await meta.kubectl("patch", "configmap", "web", "-n", namespace, "-p", '{"data": {"colour": "red"}}')
        await everywhere("configmaps", "web", is_so=lambda found: found["data"] == {"colour": "red"})
        await meta.kubectl("set", "image", "deployment/web", "web=example.com/web:2", "-n", namespace)
        await meta.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=120s")
        await everywhere("pods", is_so=lambda found: [_image(one) for one in found] == ["example.com/web:2"] * 2)
        await meta.kubectl("delete", "-n", namespace, "-f", "-", stdin=APP)
        await everywhere("pods,services,configmaps", "-l", "hansa.dev/upper", is_so=_is_without_app)


def _image(found):
    return found["spec"]["containers"][0]["image"]


def _is_without_app(found):
    return not [one for one in found if one["metadata"]["name"].startswith("web")]


async def _is(side, namespace, *what, is_so):
    try:
        found = await side.kubectl.get(*what, "-n", namespace)
    except programs.Refused as error:
        raise AssertionError(f"{side.name}: {error}") from None
    found = found.get("items", found)
    assert is_so(found), f"{side.name} has {found}"
    return True
